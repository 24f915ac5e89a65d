import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import {
  createPayloadThreads,
  type PayloadThreads,
  type ThreadVerdict,
} from '../../../src/catalogue/payload-threads.ts'

const listOf = (items: object) => ({ type: 'object', properties: { list: { type: 'array', items } } })
const branches = Array.from({ length: 20 }, (_, index) => ({ type: 'integer', maximum: -index }))

const eventKeys = [
  { key: 'a:pattern', schema: { type: 'object', properties: { a: { type: 'string', pattern: '^(a+)+$' } } } },
  { key: 'a:lines', schema: listOf({ type: 'object', required: ['x', 'y'] }) },
  {
    key: 'a:contains',
    schema: { type: 'object', properties: { list: { type: 'array', contains: { anyOf: branches } } } },
  },
  {
    key: 'a:circle',
    schema: {
      type: 'object',
      properties: { a: { $ref: '#/$defs/a' } },
      $defs: { a: { anyOf: [{ $ref: '#/$defs/a' }] } },
    },
  },
]
const endless = JSON.stringify({ data: { a: `${'a'.repeat(64)}!` } })
const lines = (length: number): string =>
  JSON.stringify({ data: { list: Array.from({ length }, () => ({})) } })

describe('threads that check payloads', () => {
  let threads: PayloadThreads
  const start = (limits: Parameters<typeof createPayloadThreads>[1] = {}): void => {
    threads = createPayloadThreads(eventKeys, limits)
  }
  const check = (eventKey: string, json: string, organisationId = 'org_a'): Promise<ThreadVerdict> =>
    threads.check({ organisationId, eventKey, json })
  afterEach(() => threads.close())

  it('name every bad field of a payload that is quickly checked, and the first of any other', async () => {
    start({ checkTimeoutMs: 10_000 })
    const few = await check('a:lines', lines(2))
    expect(few.kind === 'checked' ? few.errors.map(({ pointer }) => pointer) : few).to.deep.equal([
      '/list/0/x',
      '/list/0/y',
      '/list/1/x',
      '/list/1/y',
    ])
    const many = await check('a:lines', lines(80_000))
    expect(many.kind === 'checked' ? many.errors.map(({ pointer }) => pointer) : many).to.deep.equal([
      '/list/0/x',
    ])
    expect(many.kind === 'checked' && many.ms > 0).to.equal(true)
  })

  it('give a payload its whole time although the process was paused', async () => {
    start({ threads: 1, checkTimeoutMs: 6_000 })
    // Of growing length, until one takes so long that the pause begins in the middle.
    let json = ''
    for (let length = 16, ms = 0; ms < 500; length++) {
      json = JSON.stringify({ data: { a: `${'a'.repeat(length)}!` } })
      const verdicts = [await check('a:pattern', json), await check('a:pattern', json)]
      ms = Math.min(...verdicts.map((verdict) => (verdict.kind === 'busy' ? 0 : verdict.ms)))
    }
    const pause = spawn('sh', [
      '-c',
      `read go; kill -STOP ${process.pid}; sleep 6.5; kill -CONT ${process.pid}`,
    ])
    await once(pause, 'spawn')
    const checked = check('a:pattern', json)
    await delay(50)
    pause.stdin.end('\n')
    await once(pause, 'exit')
    // Only a pause in the middle takes it to the limit.
    expect(await checked).to.deep.include({ kind: 'checked', ms: 6_000 })
  })

  it('are stopped when a payload takes too long, and replaced for the next', async () => {
    start({ threads: 1, checkTimeoutMs: 2_000 })
    expect(await check('a:pattern', endless)).to.deep.include({ kind: 'stopped' })
    expect(await check('a:pattern', '{"data":{"a":"aaa"}}')).to.deep.include({ kind: 'checked', errors: [] })
  })

  it('are stopped when a payload takes too much memory, while the process goes on', async () => {
    start({ threads: 1, checkTimeoutMs: 30_000 })
    const json = JSON.stringify({ data: { list: Array.from({ length: 125_000 }, () => 1) } })
    expect(await check('a:contains', json)).to.deep.include({ kind: 'stopped' })
    expect(await check('a:contains', '{"data":{"list":[-50]}}')).to.deep.include({
      kind: 'checked',
      errors: [],
    })
  })

  it('survive a schema that refers to itself at the same value', async () => {
    start({ checkTimeoutMs: 5_000 })
    expect(await check('a:circle', '{"data":{"a":1}}')).to.deep.include({ kind: 'stopped' })
  })

  it('take the organisations in turn', async () => {
    start({ threads: 1, checkTimeoutMs: 10_000, maxWaitMs: 60_000 })
    const ended: string[] = []
    const note = async (name: string, organisationId: string): Promise<void> => {
      await check('a:lines', lines(1), organisationId)
      ended.push(name)
    }
    await Promise.all([note('a1', 'org_a'), note('a2', 'org_a'), note('a3', 'org_a'), note('b1', 'org_b')])
    expect(ended).to.deep.equal(['a1', 'a2', 'b1', 'a3'])
  })

  it('are busy for an organisation with a quarter of the queue, not for another', async () => {
    start({ threads: 1, checkTimeoutMs: 2_000, maxWaitMs: 60_000, maxWaiting: 2_000_000 })
    const running = check('a:pattern', endless)
    const waiting = Array.from({ length: 3 }, () => check('a:lines', lines(80_000)))
    expect(await check('a:lines', lines(1))).to.deep.equal({ kind: 'busy' })
    expect(await check('a:lines', lines(1), 'org_b')).to.deep.include({ kind: 'checked' })
    expect((await Promise.all([running, ...waiting])).map(({ kind }) => kind)).to.deep.equal([
      'stopped',
      'checked',
      'checked',
      'checked',
    ])
  })

  it('let nothing wait longer than the limit, nor beyond their end', async () => {
    start({ threads: 1, checkTimeoutMs: 5_000, maxWaitMs: 50 })
    void check('a:pattern', endless)
    expect(await check('a:lines', lines(1))).to.deep.equal({ kind: 'busy' })
    const last = check('a:lines', lines(1))
    await threads.close()
    expect(await last).to.deep.equal({ kind: 'busy' })
    expect(await check('a:lines', lines(1))).to.deep.equal({ kind: 'busy' })
  })
})
