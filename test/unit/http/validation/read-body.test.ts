import { ServerResponse, type IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { expect } from 'chai'
import Koa, { type Context } from 'koa'
import { readJsonBody } from '../../../../src/http/validation/read-body.ts'

const SMALL = JSON.stringify({ text: 'x'.repeat(1_000) })
const LARGE = JSON.stringify({ text: 'x'.repeat(20_000) })

describe('readJsonBody', () => {
  let iteration = 0
  let counter: NodeJS.Immediate
  const count = (): void => {
    iteration++
    counter = setImmediate(count)
  }
  beforeEach(count)
  afterEach(() => clearImmediate(counter))

  /** Reads a body that is there already; `parsed` gets its name and the iteration of the event loop. */
  async function read(organisationId: string, body: string, parsed: [string, number][]): Promise<void> {
    await readJsonBody(contextOf(body), { maxBytes: 256 * 1024, organisationId })
    parsed.push([organisationId, iteration])
  }

  it('parses one large body in an iteration of the event loop', async () => {
    const parsed: [string, number][] = []
    await Promise.all(Array.from({ length: 16 }, () => read('org', LARGE, parsed)))
    expect(new Set(parsed.map(([, at]) => at))).to.have.property('size', 16)
  })

  it('parses large bodies of organisations in turn', async () => {
    const parsed: [string, number][] = []
    const ofOne = Array.from({ length: 16 }, () => read('one', LARGE, parsed))
    await Promise.all([...ofOne, read('other', LARGE, parsed)])
    expect(parsed.findIndex(([name]) => name === 'other')).to.be.at.most(2)
  })

  it('parses a small body at once beside large ones', async () => {
    const parsed: [string, number][] = []
    const large = Array.from({ length: 16 }, () => read('large', LARGE, parsed))
    await Promise.all([...large, read('small', SMALL, parsed)])
    expect(parsed.findIndex(([name]) => name === 'small')).to.be.at.most(1)
  })

  it('holds 32 MiB of one organisation, and takes more again once they are parsed', async () => {
    const limits = { maxBytes: 1024 * 1024, organisationId: 'one' }
    const packed = () => readJsonBody(contextOf(SMALL, { 'content-encoding': 'identity' }), limits)
    const held = await Promise.allSettled(Array.from({ length: 40 }, packed))
    expect(held.filter(({ status }) => status === 'fulfilled')).to.have.length(32)
    for (const end of held)
      if (end.status === 'rejected') expect(end.reason).to.nested.include({ 'problem.code': 'overloaded' })
    await packed()
  })
})

function contextOf(body: string, more: Record<string, string> = {}): Context {
  const headers = { 'content-type': 'application/json', 'content-length': String(body.length), ...more }
  const request = Object.assign(Readable.from([Buffer.from(body)]), { headers }) as unknown as IncomingMessage
  return new Koa().createContext(request, new ServerResponse(request))
}
