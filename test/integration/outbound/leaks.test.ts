import { readdirSync, readlinkSync } from 'node:fs'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect } from 'chai'
import { eventually } from '../../helpers/eventually.ts'
import type { HttpClient } from '../../../src/outbound/http-client.ts'
import { MISBEHAVIOURS } from './misbehaviours.ts'
import { createTestClient, onSecondRequest, startReceiver, type Receiver, NO_REST } from './receivers.ts'

const DEADLINE_MS = 100
// Those that wait for the deadline, or send much, say nothing new of memory when they are made again and again.
const SLOW = /stalls|drips|never answers|thousand|pours out|endless|upload/
const ROUNDS = 12
/** A socket, or a client of undici, leaked anywhere is several thousand; what Temporal learns meanwhile some 300. */
const MAX_BYTES_PER_POST = 1_000

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

/** Open sockets of this process, whatever owns them; on Linux only. */
function openSockets(): number {
  try {
    const folder = '/proc/self/fd'
    return readdirSync(folder).filter((fd) => isSocket(`${folder}/${fd}`)).length
  } catch {
    return 0
  }
}

function isSocket(path: string): boolean {
  try {
    return readlinkSync(path).startsWith('socket:')
  } catch {
    // The one that was reading the folder.
    return false
  }
}

/** What is in use when nothing is in progress any more. */
async function settledBytes(socketsAtRest: number): Promise<number> {
  await eventually(() => expect(openSockets()).to.equal(socketsAtRest))
  collectGarbage()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

describe('misbehaving endpoints', () => {
  async function postToAll(client: HttpClient, receivers: readonly Receiver[]): Promise<void> {
    const keys = [{}, { reuseKey: 'webhook' }, { reuseKey: 'webhook' }]
    for (const reuse of keys) {
      const posts = receivers.map(({ port }) =>
        client.post({ url: `http://127.0.0.1:${port}/`, headers: {}, body: Buffer.from('{}'), ...reuse }),
      )
      await Promise.all(posts)
    }
  }

  it('leave behind neither a socket nor memory', async () => {
    const socketsBefore = openSockets()
    const rows = MISBEHAVIOURS.filter(({ title }) => !SLOW.test(title))
    const behaviours = rows.flatMap(({ behave }) => [behave, onSecondRequest(behave)])
    const receivers = await Promise.all(behaviours.map((behave) => startReceiver(behave)))
    const listening = openSockets()
    const postRounds = async (rounds: number): Promise<number> => {
      const client = createTestClient({ timeoutMs: DEADLINE_MS, poolLimits: NO_REST })
      for (let round = 0; round < rounds; round += 1) await postToAll(client, receivers)
      await client.close()
      for (const { received } of receivers) received.length = 0
      return settledBytes(listening)
    }
    await postRounds(4)
    const posts = ROUNDS * receivers.length * 3
    let bytesPerPost = Infinity
    // A leak grows each time; compiled code does so once.
    for (let time = 0; time < 3 && bytesPerPost >= MAX_BYTES_PER_POST; time++)
      bytesPerPost = (-(await postRounds(4)) + (await postRounds(ROUNDS))) / posts
    await Promise.all(receivers.map((receiver) => receiver.stop()))
    await eventually(() => expect(openSockets()).to.equal(socketsBefore))
    expect(bytesPerPost, `in ${posts} POSTs`).to.be.below(MAX_BYTES_PER_POST)
  })
})
