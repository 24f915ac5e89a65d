import { expect } from 'chai'
import { eventually } from '../../helpers/eventually.ts'
import { MISBEHAVIOURS, type Misbehaviour } from './misbehaviours.ts'
import { createTestClient, onSecondRequest, startReceiver, NO_REST } from './receivers.ts'
import type { PostResult } from '../../../src/outbound/http-client.ts'

/** Of those that end by it, and of those that do not, also on a busy machine. */
const DEADLINE_MS = 1_000
const LONG_DEADLINE_MS = 10_000
const SMALL = Buffer.from('{}')

/** The ways in which a POST may come by its connection; the outcome must not depend on it. */
const WAYS = ['a connection of its own', 'a new connection to keep', 'a kept connection'] as const

type Posted = { result: PostResult; received: number; connections: number }

function deadlineOf({ title }: Misbehaviour): number {
  return title.endsWith('stalls') ? DEADLINE_MS : LONG_DEADLINE_MS
}

async function postTo(row: Misbehaviour, way: (typeof WAYS)[number]): Promise<Posted> {
  const isKept = way === 'a kept connection'
  const eager = row.eagerAtBytes !== undefined
  const receiver = await startReceiver(isKept ? onSecondRequest(row.behave) : row.behave, undefined, {
    eager,
  })
  const client = createTestClient({ timeoutMs: deadlineOf(row), poolLimits: NO_REST })
  const url = `http://127.0.0.1:${receiver.port}/`
  const reuseKey = way === 'a connection of its own' ? {} : { reuseKey: 'webhook' }
  if (isKept) await client.post({ url, headers: {}, body: SMALL, ...reuseKey })
  const body = row.eagerAtBytes === undefined ? SMALL : Buffer.alloc(row.eagerAtBytes)
  const result = await client.post({ url, headers: {}, body, ...reuseKey })
  await client.close()
  await eventually(() => expect(receiver.open()).to.equal(0))
  const received = receiver.received.length - (isKept ? 1 : 0)
  await receiver.stop()
  return { result, received, connections: receiver.connections() }
}

describe('an endpoint that misbehaves', () => {
  for (const row of MISBEHAVIOURS) {
    const { title, failureCode, statusCode } = row
    it(`${title}: ${failureCode ?? 'a confirmation'}, whatever the connection`, async () => {
      const posted = await Promise.all(WAYS.map((way) => postTo(row, way)))
      for (const [index, { result, received, connections }] of posted.entries()) {
        const way = WAYS[index]
        const outcome = { succeeded: failureCode === null, failureCode, statusCode }
        expect(result, way).to.include(outcome)
        // Never made again, whatever went wrong.
        expect({ received, connections }, way).to.deep.equal({ received: 1, connections: 1 })
      }
    })
  }
})
