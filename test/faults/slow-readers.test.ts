import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { expect } from 'chai'
import { eventually } from '../helpers/eventually.ts'
import type { PosthornProcess } from '../helpers/processes/posthorn.ts'
import { useStage } from '../helpers/processes/stage.ts'

const REQUESTS_AHEAD = 1_400

/** The document is some 370 kB: unbounded, each of the connections would hold more than a hundred megabytes. */
const MAX_GROWTH_MB = 40

describe('clients that pipeline requests and never read', function () {
  const stage = useStage()
  let sockets: Socket[]

  beforeEach(() => {
    sockets = []
  })
  afterEach(() => {
    for (const socket of sockets) socket.destroy()
  })

  async function open(posthorn: PosthornProcess): Promise<Socket> {
    const { hostname, port } = new URL(posthorn.url)
    const socket = connect(Number(port), hostname).on('error', () => undefined)
    sockets.push(socket)
    await once(socket, 'connect')
    return socket
  }

  it('cost little memory and are disconnected, while others are served', async function () {
    if (process.platform !== 'linux') this.skip()
    const posthorn = await stage.start()
    // As long as these have not been answered once, memory grows by what their first use needs.
    for (let index = 0; index < 50; index++) await posthorn.call('GET', '/openapi.json')
    const beforeMb = residentMb(posthorn.pid)
    const silent = await Promise.all([open(posthorn), open(posthorn)])
    for (const socket of silent)
      socket.write('GET /openapi.json HTTP/1.1\r\nHost: posthorn\r\n\r\n'.repeat(REQUESTS_AHEAD))
    await eventually(() => expect(serverSide(posthorn, silent)).to.equal(2))
    let mostMb = 0
    await eventually(async () => {
      mostMb = Math.max(mostMb, residentMb(posthorn.pid))
      expect((await posthorn.call('GET', '/openapi.json')).status).to.equal(200)
      expect(serverSide(posthorn, silent)).to.equal(0)
    }, 60_000)
    expect(mostMb - beforeMb).to.be.below(MAX_GROWTH_MB)
    const deliveryId = await stage.publish(posthorn)
    await stage.reaches(deliveryId, { state: 'completed', attempts: 1 })
    expect(await posthorn.stop()).to.equal(0)
  })
})

function residentMb(pid: number): number {
  const [, kilobytes = '0'] = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kilobytes) / 1_024
}

/** How many of these connections the process still has open: a client that does not read sees no end. */
function serverSide(posthorn: PosthornProcess, clients: Socket[]): number {
  const { port } = new URL(posthorn.url)
  const ports = new Set(clients.map(({ localPort }) => localPort))
  const lines = readFileSync('/proc/net/tcp', 'utf8').split('\n').slice(1)
  return lines.filter((line) => {
    const [, local = '', remote = '', state = ''] = line.trim().split(/\s+/)
    const isOurs = portOf(local) === Number(port) && ports.has(portOf(remote))
    // Established, or closed by the client alone.
    return isOurs && (state === '01' || state === '08')
  }).length
}

function portOf(address: string): number {
  return Number.parseInt(address.split(':')[1] ?? '', 16)
}
