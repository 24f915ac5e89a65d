// A whole receiver: it verifies each delivery, handles it once and answers 2xx.
//
//   SECRET=<signing secret> PORT=4000 node receiver.mjs
import { createHmac, timingSafeEqual } from 'node:crypto'
import { createServer } from 'node:http'
import { buffer } from 'node:stream/consumers'

const { SECRET, PORT = '4000' } = process.env
// Anyone can sign with an empty secret.
if (!SECRET) throw new Error('SECRET is missing')

// More than any delivery has.
const MAX_BODY_BYTES = 1024 * 1024

// The ids of the deliveries that were handled. Keep them in your database, in the transaction that handles the event:
// in memory they are lost when the process ends.
const handled = new Set()

createServer((request, response) => {
  receive(request).then(
    (status) => response.writeHead(status).end(),
    () => response.destroy(),
  )
}).listen(Number(PORT), '127.0.0.1')

async function receive(request) {
  // Every delivery has a Content-Length, and Node.js reads no more than it says.
  if (!(Number(request.headers['content-length']) <= MAX_BODY_BYTES)) return 413
  const rawBody = await buffer(request)
  if (!isValid(SECRET, request.headers['x-webhook-signature'], rawBody)) return 401
  const id = request.headers['x-webhook-event-id']
  if (handled.has(id)) return 200
  const { event, data } = JSON.parse(rawBody.toString('utf8'))
  console.log(`handled ${id}: ${event} ${JSON.stringify(data)}`)
  handled.add(id)
  return 200
}

// The key is the secret's 64 characters as they are shown: do not decode them from hex.
function isValid(secret, signatureHeader, rawBody) {
  const match = /^sha256=((?:[0-9a-fA-F]{2})+)$/.exec(signatureHeader ?? '')
  if (!match) return false
  const given = Buffer.from(match[1], 'hex')
  const expected = createHmac('sha256', secret).update(rawBody).digest()
  return given.length === expected.length && timingSafeEqual(given, expected)
}
