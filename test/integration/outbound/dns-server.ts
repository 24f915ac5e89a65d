import { createSocket } from 'node:dgram'
import { once } from 'node:events'

type Records = { a?: string[]; aAfterMs?: number; aaaa?: string[] | 'silent' }

/**
 * Addresses by host name. A list gives one answer after the other, the last of them from then on. What is `silent` and
 * all names that begin with `dead` are never answered; names that are not here do not exist.
 */
export type Zone = Record<string, Records | Records[] | 'silent'>

export type DnsServer = { address: string; queries: () => number; stop: () => Promise<void> }

const TYPE_A = 1
const TYPE_AAAA = 28
const NAME_ERROR = 3

/** A DNS server on a UDP port, by default a free one, for one `zone` that may be changed while it runs. */
export async function startDnsServer(zone: Zone, port = 0): Promise<DnsServer> {
  const asked = new Map<string, number>()
  let queries = 0
  const socket = createSocket('udp4')
  socket.on('message', (query, from) => {
    queries += 1
    const { name, type, end } = readQuestion(query)
    const entry = name.startsWith('dead') ? 'silent' : zone[name.toLowerCase()]
    const count = asked.get(`${name} ${type}`) ?? 0
    asked.set(`${name} ${type}`, count + 1)
    const records = Array.isArray(entry) ? (entry[count] ?? entry.at(-1)) : entry
    if (records === 'silent' || (type === TYPE_AAAA && records?.aaaa === 'silent')) return
    const answers = answersFor(records ?? {}, type)
    const header = Buffer.alloc(12)
    query.copy(header, 0, 0, 2)
    header.writeUInt16BE(0x8180 | (records === undefined ? NAME_ERROR : 0), 2)
    header.writeUInt16BE(1, 4)
    header.writeUInt16BE(answers.length, 6)
    const answer = Buffer.concat([header, query.subarray(12, end), ...answers])
    const send = (): void => socket.send(answer, from.port, from.address)
    const afterMs = type === TYPE_A ? (records?.aAfterMs ?? 0) : 0
    if (afterMs > 0) setTimeout(send, afterMs)
    else send()
  })
  socket.bind(port, '127.0.0.1')
  await once(socket, 'listening')
  const stop = async (): Promise<void> => {
    socket.close()
    await once(socket, 'close')
  }
  return { address: `127.0.0.1:${socket.address().port}`, queries: () => queries, stop }
}

function readQuestion(query: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = []
  let at = 12
  for (let length = query[at]!; length > 0; length = query[at]!) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  return { name: labels.join('.'), type: query.readUInt16BE(at + 1), end: at + 5 }
}

function answersFor({ a = [], aaaa = [] }: Records, type: number): Buffer[] {
  if (type === TYPE_A) return a.map((ip) => record(TYPE_A, Buffer.from(ip.split('.').map(Number))))
  if (type !== TYPE_AAAA || aaaa === 'silent') return []
  return aaaa.map((ip) => record(TYPE_AAAA, bytesOf(ip)))
}

/** The 16 bytes of an IPv6 address; the URL parser writes every spelling the same way. */
function bytesOf(ipv6: string): Buffer {
  const [head = [], tail = []] = new URL(`http://[${ipv6}]`).hostname
    .slice(1, -1)
    .split('::')
    .map((part) => part.split(':').filter((word) => word !== ''))
  const words = [...head, ...Array<string>(8 - head.length - tail.length).fill('0'), ...tail]
  return Buffer.from(words.map((word) => word.padStart(4, '0')).join(''), 'hex')
}

/** One answer about the name of the question (a pointer to byte 12), class IN, valid for no time. */
function record(type: number, data: Buffer): Buffer {
  const head = Buffer.alloc(12)
  head.writeUInt16BE(0xc00c, 0)
  head.writeUInt16BE(type, 2)
  head.writeUInt16BE(1, 4)
  head.writeUInt16BE(data.length, 10)
  return Buffer.concat([head, data])
}
