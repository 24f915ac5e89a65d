import { mock } from 'node:test'
import { expect } from 'chai'
import type { Backlog } from '../../../../src/db/queries/backlog.ts'
import { createBacklogReader } from '../../../../src/process/metrics/backlog-reader.ts'
import { EMPTY_BACKLOG } from '../../../helpers/deliveries/backlog.ts'
import { silentLogger } from '../../../helpers/silent-logger.ts'

const CANCELLED = Object.assign(new Error('canceling statement'), { code: '57014' })
const AWAY = Object.assign(new Error('refused'), { code: 'ECONNREFUSED' })

describe('the reader of the backlog', () => {
  beforeEach(() => mock.timers.enable({ apis: ['setTimeout'] }))
  afterEach(() => mock.timers.reset())

  /** A database whose counts end when the test ends them, on a clock that only the test moves. */
  function createDatabase() {
    let clockMs = 0
    const counts: { resolve: (backlog: Backlog) => void; reject: (error: Error) => void }[] = []
    const lines: object[] = []
    const read = createBacklogReader<Backlog>({
      read: () => new Promise((resolve, reject) => counts.push({ resolve, reject })),
      logger: { ...silentLogger, warn: (fields) => void lines.push(fields) },
      nowMs: () => clockMs,
    })
    return {
      read,
      lines,
      asked: () => counts.length,
      pass: (ms: number) => {
        clockMs += ms
        mock.timers.tick(ms)
      },
      /** Ends the latest count with so many waiting deliveries, or with an error. */
      end: async (outcome: number | Error) => {
        const { resolve, reject } = counts.at(-1)!
        if (typeof outcome === 'number') resolve({ ...EMPTY_BACKLOG, waiting: outcome })
        else reject(outcome)
        await new Promise(setImmediate)
      },
    }
  }

  it('reads once for concurrent scrapes, and again after five seconds', async () => {
    const { read, asked, pass, end } = createDatabase()
    const both = Promise.all([read(), read()])
    await end(1)
    expect((await both).map((backlog) => backlog?.waiting)).to.deep.equal([1, 1])
    pass(4_999)
    expect((await read())?.waiting).to.equal(1)
    expect(asked()).to.equal(1)
    pass(1)
    const next = read()
    await end(2)
    expect((await next)?.waiting).to.equal(2)
    expect(asked()).to.equal(2)
  })

  it('delays a scrape by at most one second, and serves a later result to the next one', async () => {
    const { read, asked, pass, end } = createDatabase()
    const first = read()
    pass(1_000)
    expect(await first).to.equal(null)
    pass(500)
    await end(1)
    pass(15_000)
    expect((await read())?.waiting).to.equal(1)
    expect(asked()).to.equal(1)
  })

  it("uses at most one fiftieth of the database's time", async () => {
    const { read, asked, pass, end } = createDatabase()
    void read()
    pass(1_500)
    await end(1)
    pass(74_999)
    await read()
    expect(asked()).to.equal(1)
    pass(1)
    void read()
    expect(asked()).to.equal(2)
  })

  it('returns no stale figures while the database is unavailable, and retries after five seconds', async () => {
    const { read, asked, lines, pass, end } = createDatabase()
    const first = read()
    await end(1)
    await first
    pass(5_000)
    const second = read()
    pass(900)
    await end(AWAY)
    expect(await second).to.equal(null)
    expect(lines).to.have.length(1)
    expect(lines[0]).to.include({ event: 'metrics.backlog_failed', err: AWAY })
    pass(5_000)
    void read()
    expect(asked()).to.equal(3)
  })

  it('waits after a cancelled count as after a long one', async () => {
    const { read, asked, pass, end } = createDatabase()
    void read()
    pass(2_000)
    await end(CANCELLED)
    pass(99_999)
    expect(await read()).to.equal(null)
    expect(asked()).to.equal(1)
    pass(1)
    void read()
    expect(asked()).to.equal(2)
  })

  it('keeps its figures after a cancelled count', async () => {
    const { read, pass, end } = createDatabase()
    void read()
    await end(1)
    pass(5_000)
    void read()
    await end(CANCELLED)
    expect((await read())?.waiting).to.equal(1)
    pass(5_000)
    void read()
    await end(AWAY)
    expect(await read()).to.equal(null)
  })

  it('drops figures that are four minutes old', async () => {
    const { read, pass, end } = createDatabase()
    const first = read()
    await end(1)
    await first
    pass(240_000)
    const late = read()
    pass(1_000)
    expect(await late).to.equal(null)
  })
})
