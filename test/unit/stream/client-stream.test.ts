import { setTimeout as delay } from 'node:timers/promises'
import { Writable } from 'node:stream'
import { expect } from 'chai'
import type { StreamedEvent } from '../../../src/db/queries/event-stream.ts'
import { createStream } from '../../../src/stream/client-stream.ts'

const EVENTS = 20
const BODY_BYTES = 10_000
const STALL_MS = 300

describe('the stream of a client', () => {
  /** The stream of a client that is behind by one page, larger than its buffer; why it ended. */
  function openBehind(bodyBytes = BODY_BYTES) {
    const ends: string[] = []
    const at = (sequence: number) => ({ sequence, atMs: 0 })
    const events = Array.from({ length: EVENTS }, (_, index): StreamedEvent => {
      const body = Buffer.alloc(bodyBytes, 'x')
      return { id: `event-${index}`, organisationId: 'org_a', key: 'a:b', sequence: index + 1, body }
    })
    const { output } = createStream({
      organisationId: 'org_a',
      keys: new Set(['a:b']),
      start: { position: at(0), lastEventId: null, isGap: false },
      feed: {
        position: () => at(EVENTS),
        offered: () => at(EVENTS),
        join: () => undefined,
        leave: () => undefined,
      },
      seal: () => 'position',
      readPage: () => Promise.resolve({ horizon: 0, upTo: EVENTS, events }),
      stallMs: STALL_MS,
      onSent: () => undefined,
      onFault: (error) => ends.push(String(error)),
      onClosed: (reason) => ends.push(reason),
    })
    return { output, ends }
  }

  it('is not cut off while its client reads, however slowly', async () => {
    const { output, ends } = openBehind()
    for (let read = 0; read < 10; read++) {
      await delay(STALL_MS / 3)
      output.read(BODY_BYTES / 2)
    }
    expect(ends).to.deep.equal([])
    output.destroy()
  })

  it('is not cut off while a slow connection takes a large event', async () => {
    const { output, ends } = openBehind(256 * 1024)
    const connection = new Writable({
      write({ length }: Buffer, _encoding, done) {
        setTimeout(done, (STALL_MS / 3) * (length / (16 * 1024)))
      },
    })
    output.pipe(connection)
    await delay(STALL_MS * 4)
    expect(ends).to.deep.equal([])
    output.destroy()
  })

  it('is cut off when its client reads nothing more', async () => {
    const { output, ends } = openBehind()
    await delay(STALL_MS / 3)
    output.read(BODY_BYTES / 2)
    await delay(STALL_MS * 4)
    expect(ends).to.deep.equal(['slow'])
  })
})
