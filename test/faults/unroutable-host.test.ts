import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { eventually } from '../helpers/eventually.ts'
import { createWebhookRow, publishRow } from '../helpers/database/factories.ts'
import type { PosthornProcess } from '../helpers/processes/posthorn.ts'
import { useStage } from '../helpers/processes/stage.ts'
import { startDnsServer, type DnsServer } from '../integration/outbound/dns-server.ts'

/** The system refuses TCP to the broadcast address of loopback at once with ENETUNREACH, as to a host without a route. */
const NO_ROUTE = '127.255.255.255'
const PRELOAD = fileURLToPath(new URL('./rig/use-dns-server.mjs', import.meta.url))

describe('a host that cannot be connected to', function () {
  const stage = useStage()
  let dns: DnsServer
  let sockets: Socket[]

  beforeEach(async () => {
    sockets = []
    dns = await startDnsServer({
      'no-route.example': { a: [NO_ROUTE] },
      'no-routes.example': { a: [NO_ROUTE, NO_ROUTE] },
    })
  })
  afterEach(async () => {
    for (const socket of sockets) socket.destroy()
    await dns.stop()
  })

  function start(firstAttempt: string): Promise<PosthornProcess> {
    const env = {
      FIRST_ATTEMPT: firstAttempt,
      METRICS_PORT: '0',
      NODE_OPTIONS: `--import ${PRELOAD}`,
      POSTHORN_TEST_DNS: dns.address,
    }
    return stage.start({ env })
  }

  async function errorOf(deliveryId: string): Promise<object | undefined> {
    const found = await stage.dataSource.query<object[]>(
      'SELECT failure_code, error FROM attempt WHERE delivery_id = $1 AND number = 1',
      [deliveryId],
    )
    return found[0]
  }

  for (const mode of ['direct', 'workflow']) {
    it(`records a failed attempt for a host without a route, and continues (FIRST_ATTEMPT=${mode})`, async () => {
      const posthorn = await start(mode)
      for (const host of ['no-route.example', 'no-routes.example']) {
        const { id: webhookId } = await createWebhookRow(stage.dataSource, {
          organisationId: stage.member.organisationId,
          url: `https://${host}/hook`,
          subscribedEventKeys: ['invoice:created'],
        })
        const wanted = { event: 'invoice:created', webhookId }
        const deliveryId = await stage.publish(posthorn, wanted)
        await stage.fails(deliveryId)
        expect(await errorOf(deliveryId)).to.deep.equal({
          failure_code: 'network_error',
          error: 'The network has no route to the endpoint.',
        })
      }
      const next = await stage.publish(posthorn)
      await stage.reaches(next, { state: 'completed', attempts: 1 })
      const counted = await (await posthorn.scrape()).text()
      expect(counted).to.include('posthorn_unexpected_errors_total{kind="exception"} 0')
      expect(await posthorn.stop()).to.equal(0)
    })
  }

  it('survives a lack of file descriptors, or is started again, and delivers once there are some', async function () {
    if (!canLimit()) this.skip()
    const posthorn = await start('direct')
    const opened = openFiles(posthorn.pid)
    limitFiles(posthorn.pid, String(opened + 4))
    const { hostname, port } = new URL(posthorn.url)
    // More than it can accept; every further socket of its own fails with EMFILE.
    for (let index = 0; index < 20; index++) {
      sockets.push(connect(Number(port), hostname).on('error', () => undefined))
    }
    await eventually(() => expect(openFiles(posthorn.pid)).to.be.at.least(opened + 4))
    const [delivery] = await publishRow(stage.dataSource, stage.member.organisationId, { sweepAfterMs: 0 })
    const { deliveryId } = delivery!
    await stage.fails(deliveryId)
    expect(await errorOf(deliveryId)).to.deep.equal({
      failure_code: 'network_error',
      error: 'The service could not open another connection.',
    })
    limitFiles(posthorn.pid, 'unlimited')
    for (const socket of sockets.splice(0)) socket.destroy()
    const isDelivered = () => eventually(async () => expect(await stage.uncompleted()).to.equal(0), 30_000)
    await isDelivered().catch(async (error: unknown) => {
      // Node.js aborts where a workflow begins while there is none: as a supervisor would, start it again.
      if (!posthorn.log().includes('Failed to initialize uv loop')) throw error
      await start('direct')
      await isDelivered()
    })
  })
})

function openFiles(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length
}

/** Of an own process, its soft limit: no rights are needed. `unlimited`: as high as it may be. */
function limitFiles(pid: number, soft: string): void {
  const wanted = soft === 'unlimited' ? hardLimit(pid) : soft
  execFileSync('prlimit', ['--pid', String(pid), `--nofile=${wanted}:`])
}

function hardLimit(pid: number): string {
  const [, hard = '4096'] =
    /Max open files +\S+ +(\S+)/.exec(readFileSync(`/proc/${pid}/limits`, 'utf8')) ?? []
  return hard
}

function canLimit(): boolean {
  return existsSync('/proc/self/limits') && spawnSync('prlimit', ['--version']).status === 0
}
