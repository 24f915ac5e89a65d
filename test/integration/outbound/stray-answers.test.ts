import type { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { TlsOptions } from 'node:tls'
import { expect } from 'chai'
import type { HttpClientOptions } from '../../../src/outbound/http-client.ts'
import { createCertificate, type Certificate } from '../../helpers/receivers/receiver.ts'
import { createTestClient, NO_REST, OK, startReceiver } from './receivers.ts'

const REFUSAL = 'HTTP/1.1 500 Oops\r\ncontent-length: 0\r\n\r\n'

/** What comes of its own accord, between the answers to two POSTs. */
const STRAYS: [title: string, stray: string][] = [
  ['a whole answer', OK],
  ['the head of an answer', 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n'],
  ['the beginning of an answer', 'HTTP/1.1 2'],
  ['early hints', 'HTTP/1.1 103 Early Hints\r\n\r\n'],
  ['an empty line', '\r\n'],
  ['one byte', 'x'],
]

/** Gives what was sent to the system of the endpoint. */
const sendNow = (socket: Socket, stray: string): Promise<void> =>
  new Promise((sent) => socket.write(stray, () => sent()))

/**
 * Posts twice. The endpoint confirms the first POST, and what `sendStray` sends comes before the second, which the
 * endpoint refuses: that is what has to be seen.
 */
async function expectOwnAnswer(
  sendStray: (socket: Socket) => Promise<void> | void,
  options: Partial<HttpClientOptions> = {},
  secure?: TlsOptions,
): Promise<void> {
  const sockets: Socket[] = []
  const behave = (socket: Socket): void => {
    socket.write(sockets.length === 0 ? OK : REFUSAL)
    sockets.push(socket)
  }
  const receiver = await startReceiver(behave, secure)
  const client = createTestClient(options)
  const url = `${secure === undefined ? 'http' : 'https'}://localhost:${receiver.port}/`
  const request = { url, headers: {}, body: Buffer.from('{}'), reuseKey: 'webhook' }
  const first = await client.post(request)
  await sendStray(sockets[0]!)
  const second = await client.post(request)
  await client.close()
  await receiver.stop()
  expect(first).to.include({ succeeded: true, statusCode: 200 })
  expect(second).to.include({ failureCode: 'http_status', statusCode: 500 })
  expect(receiver.received.map(({ connection }) => connection)).to.deep.equal([1, 2])
}

describe('an answer that comes before its POST is never taken for one', () => {
  let certificate: Certificate

  before(async () => {
    certificate = await createCertificate()
  })

  for (const [title, stray] of STRAYS) {
    it(`when ${title} came while the connection lay idle`, async () => {
      const send = async (socket: Socket): Promise<void> => {
        await sendNow(socket, stray)
        await delay(20)
      }
      await expectOwnAnswer(send, { poolLimits: NO_REST })
    })

    it(`when ${title} comes at the instant the connection is wanted`, async () => {
      await expectOwnAnswer((socket) => void socket.write(stray), { poolLimits: NO_REST })
    })

    it(`when ${title} comes at the instant the connection is wanted, over TLS`, async () => {
      const secure = { ...certificate, noDelay: true }
      const options = { poolLimits: NO_REST, ca: certificate.cert }
      await expectOwnAnswer((socket) => sendNow(socket, stray), options, secure)
    })

    it(`when ${title} follows a little later, though the next POST is made at once`, async () => {
      await expectOwnAnswer((socket) => void setTimeout(() => socket.write(stray), 5))
    })
  }

  // Such a stray lies in the endpoint's system until we acknowledge the answer before it: the next POST would fetch it.
  for (const waitMs of [0, 20, 40, 60]) {
    it(`when Nagle’s algorithm holds one back and the next POST is made ${waitMs} ms later`, async () => {
      const send = async (socket: Socket): Promise<void> => {
        socket.write(OK)
        await delay(waitMs)
      }
      await expectOwnAnswer(send, { ca: certificate.cert }, { ...certificate, noDelay: false })
    })
  }
})
