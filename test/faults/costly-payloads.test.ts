import { spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import type { ApiResponse } from '../helpers/api/api.ts'
import { useSeedFiles } from '../helpers/cli/seed-files.ts'
import { createMember, type TestMember } from '../helpers/database/factories.ts'
import { eventually } from '../helpers/eventually.ts'
import { percentile } from '../helpers/percentile.ts'
import type { PosthornProcess } from '../helpers/processes/posthorn.ts'
import { useStage } from '../helpers/processes/stage.ts'

const FIELDS = Array.from({ length: 12 }, (_, index) => `field${index}`)
const NUMBERS = Array.from({ length: 20 }, (_, index) => ({
  type: 'integer',
  minimum: index * 10,
  maximum: index * 10 + 5,
}))
const listOf = (items: object) => ({ type: 'object', properties: { list: { type: 'array', items } } })

const eventKeys = [
  {
    key: 'order:lines',
    meaning: 'Twelve required fields in each line',
    schema: listOf({ type: 'object', required: FIELDS }),
    example: {},
  },
  {
    key: 'order:numbers',
    meaning: 'Twenty branches for each number',
    schema: listOf({ oneOf: NUMBERS }),
    example: {},
  },
  {
    key: 'order:code',
    meaning: 'A pattern that takes for ever',
    schema: { type: 'object', properties: { code: { type: 'string', pattern: '^(a+)+$' } } },
    example: {},
  },
  { key: 'order:paid', meaning: 'Any object' },
]

const LINES = Array.from({ length: 80_000 }, () => ({}))

/** 240 KB and more, except the last. */
const ATTACKS = [
  { event: 'order:lines', data: { list: LINES } },
  { event: 'order:numbers', data: { list: Array.from({ length: 125_000 }, () => 7) } },
  { event: 'order:code', data: { code: `${'a'.repeat(64)}!` } },
]
const PUBLISHERS = 16
const ATTACK_MS = 6_000
/** Until the budget is spent: a machine that does other work starts threads slowly. */
const MAX_ATTACK_MS = 60_000

/** Loads into the process what measures how long it holds its event loop. */
const MEASURING = `--import ${fileURLToPath(new URL('./rig/measure-holds.mjs', import.meta.url))}`

const ASK_READINESS = fileURLToPath(new URL('./rig/ask-readiness.mjs', import.meta.url))

/** On a machine that does other work most answers take five times as long as the median may. */
const READY_MS = 200
const SLOW_READY_MS = 1_000

/** Of the processor; ordinary are 20 to 50 ms. An answer of `/readyz` takes a few iterations of the event loop. */
const MAX_HOLD_MS = 60

/** The same, on a slow machine, in times of what the parser takes for one large body there. */
const MAX_HOLD_PARSES = 10
const PARSES = 15

const NODE_OPTIONS = `--max-old-space-size=256 ${MEASURING}`

function publish(posthorn: PosthornProcess, by: TestMember, raw: string | Uint8Array): Promise<ApiResponse> {
  return posthorn.call('POST', `/api/orgs/${by.organisationId}/events`, {
    apiKey: by.apiKey,
    raw,
    headers: { 'content-type': 'application/json' },
  })
}

describe('payloads of an own catalogue that take long to check', () => {
  const stage = useStage()
  const files = useSeedFiles()

  it('slow no other request down, and their member is answered 429 before long', async () => {
    const posthorn = await stage.start({
      command: 'api',
      env: { POSTHORN_CATALOGUE: files.write({ eventKeys }), NODE_OPTIONS },
    })
    const other = await createMember(stage.dataSource)
    const bodies = ATTACKS.map((attack) => Buffer.from(JSON.stringify(attack)))
    const refusals: ApiResponse[] = []
    const others: number[] = []
    const startedAtMs = performance.now()
    const isOver = (): boolean => {
      const elapsedMs = performance.now() - startedAtMs
      const isLimited = refusals.some(({ status }) => status === 429)
      return elapsedMs > (isLimited ? ATTACK_MS : MAX_ATTACK_MS)
    }

    const attacker = async (index: number): Promise<void> => {
      for (let round = index; !isOver(); round++)
        refusals.push(await publish(posthorn, stage.member, bodies[round % bodies.length]!))
    }
    const good = JSON.stringify({ event: 'order:paid', data: { id: 1 } })
    const line = Object.fromEntries(FIELDS.map((name) => [name, 1]))
    const long = JSON.stringify({
      event: 'order:lines',
      data: { list: Array.from({ length: 1_000 }, () => line) },
    })
    const publishGood = async (body: string): Promise<void> => {
      while (!isOver()) {
        others.push((await publish(posthorn, other, body)).status)
        await delay(50)
      }
    }
    await expectReadyDuring(posthorn, async () => {
      const attackers = Array.from({ length: PUBLISHERS }, (_, index) => attacker(index))
      await Promise.all([...attackers, publishGood(good), publishGood(long)])
    })

    const statuses = [...new Set(refusals.map(({ status }) => status))].sort()
    const found = `${refusals.length} refused with ${statuses.join(', ')}; others ${others.length}`
    expect(statuses, found).to.include.members([422, 429])
    expect(statuses, found).to.satisfy((all: number[]) =>
      all.every((status) => [422, 429, 503].includes(status)),
    )
    const limited = refusals.find(({ status }) => status === 429)
    expect(limited?.json).to.include({ code: 'rate_limited' })
    expect(Number(limited?.headers.get('retry-after'))).to.be.within(1, 10)
    expect(others.length, found).to.be.above(10)
    expect(new Set(others), found).to.deep.equal(new Set([202]))
    expect(await posthorn.stop()).to.equal(0)
  })
})

describe('many large payloads that are accepted', () => {
  const stage = useStage()

  it('slow no other request down', async () => {
    const posthorn = await stage.start({ command: 'api', env: { NODE_OPTIONS } })
    // Without a webhook.
    const member = await createMember(stage.dataSource)
    const event = { event: 'customer:created', data: { id: 'cus_1', list: LINES } }
    const body = Buffer.from(JSON.stringify(event))
    const endsAtMs = performance.now() + ATTACK_MS
    const publisher = async (): Promise<void> => {
      while (performance.now() < endsAtMs)
        expect((await publish(posthorn, member, body)).status).to.equal(202)
    }
    await expectReadyDuring(posthorn, async () => {
      await Promise.all(Array.from({ length: PUBLISHERS }, publisher))
    })
    expect(await posthorn.stop()).to.equal(0)
  })
})

/**
 * Expects that `/readyz` of a process with {@link MEASURING} in its NODE_OPTIONS is answered in time while `work` runs,
 * requested by a process that does nothing else, and that its main thread never holds the event loop for long.
 */
async function expectReadyDuring(posthorn: PosthornProcess, work: () => Promise<void>): Promise<void> {
  const child = spawn(process.execPath, [ASK_READINESS, posthorn.url], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const printed = text(child.stdout)
  process.kill(posthorn.pid, 'SIGUSR2')
  await work().finally(() => child.kill('SIGTERM'))
  process.kill(posthorn.pid, 'SIGUSR2')
  const answers = JSON.parse(await printed) as { status: number | string; ms: number }[]
  const hold = await eventually(() => {
    const [, longest] = /longest hold: (\S+)/.exec(posthorn.log()) ?? []
    if (longest === undefined) throw new Error('the longest hold is not printed')
    return longest
  })
  const times = answers.map(({ ms }) => ms)
  const shown = [0.5, 0.95, 1].map((share) => percentile(times, share).toFixed(0)).join(', ')
  const found = `readyz ${times.length} times: median, 95%, maximum ${shown} ms; longest hold ${hold} ms`
  expect([...new Set(answers.map(({ status }) => status))], found).to.deep.equal([200])
  expect(percentile(times, 0.5), found).to.be.below(READY_MS)
  expect(percentile(times, 0.95), found).to.be.below(SLOW_READY_MS)
  if (hold !== 'unknown')
    expect(Number(hold), found).to.be.below(Math.max(MAX_HOLD_MS, MAX_HOLD_PARSES * parseMs()))
}

/** Processor time that this machine takes now to parse one large body, in ms. */
function parseMs(): number {
  const body = JSON.stringify(ATTACKS[0])
  const times = Array.from({ length: PARSES }, () => {
    const before = process.cpuUsage()
    JSON.parse(body)
    const { user, system } = process.cpuUsage(before)
    return (user + system) / 1_000
  })
  return percentile(times, 0.5)
}
