import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect, type AddressInfo, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createServer, type Server } from 'node:tls'
import { expect } from 'chai'
import { generate, type GenerateResult } from 'selfsigned'
import { useStage } from '../helpers/processes/stage.ts'
import { testServers } from '../helpers/runner/servers.ts'
import { createTemporalGate, type TemporalGate } from '../helpers/temporal/temporal-gate.ts'

describe('a Temporal that requires client certificates', () => {
  const stage = useStage()
  const sockets = new Set<Socket>()
  let folder: string
  let server: Server
  let env: Record<string, string>
  let authority: GenerateResult
  let shown: GenerateResult

  const createAuthority = () =>
    generate([{ name: 'commonName', value: 'authority' }], {
      keyType: 'ec',
      algorithm: 'sha256',
      extensions: [{ name: 'basicConstraints', cA: true }],
    })
  const leaf = (name: string, { private: key, cert }: GenerateResult) =>
    generate([{ name: 'commonName', value: name }], {
      keyType: 'ec',
      algorithm: 'sha256',
      ca: { key, cert },
      extensions: [{ name: 'subjectAltName', altNames: [{ type: 2, value: 'localhost' }] }],
    })
  const write = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text)
    return join(folder, name)
  }

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'posthorn-tls-'))
    authority = await createAuthority()
    shown = await leaf('temporal', authority)
    const client = await leaf('posthorn', authority)
    env = {
      TEMPORAL_TLS_CA_FILE: write('ca.pem', authority.cert),
      TEMPORAL_TLS_CERT_FILE: write('client.pem', client.cert),
      TEMPORAL_TLS_KEY_FILE: write('client.key', client.private),
    }
    const [host = '', port] = testServers().temporalAddress.split(':')
    server = createServer(
      {
        key: shown.private,
        cert: shown.cert,
        ca: authority.cert,
        requestCert: true,
        rejectUnauthorized: true,
        ALPNProtocols: ['h2'],
      },
      (socket) => {
        const upstream = connect(Number(port), host)
        for (const end of [socket, upstream]) {
          sockets.add(end)
          end.on('error', () => undefined)
          end.on('close', () => sockets.delete(end))
        }
        socket.pipe(upstream).pipe(socket)
      },
    )
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  })
  after(async () => {
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => server.close(resolve))
    rmSync(folder, { recursive: true })
  })

  const address = (): string => `localhost:${(server.address() as AddressInfo).port}`

  it('delivers with the certificate that the settings name', async () => {
    const posthorn = await stage.start({
      temporalAddress: address(),
      env: { ...env, FIRST_ATTEMPT: 'workflow' },
    })
    const deliveryId = await stage.publish(posthorn)
    await stage.reaches(deliveryId, { state: 'completed', attempts: 1 })
    expect(await posthorn.stop()).to.equal(0)
  })

  it('delivers with a certificate that replaced it, when Temporal no longer accepts the first', async () => {
    const posthorn = await stage.start({
      temporalAddress: address(),
      env: { ...env, FIRST_ATTEMPT: 'workflow' },
    })
    const other = await createAuthority()
    const replacing = await leaf('posthorn', other)
    write('client.pem', replacing.cert)
    write('client.key', replacing.private)
    server.setSecureContext({ key: shown.private, cert: shown.cert, ca: other.cert })
    for (const socket of sockets) socket.destroy()
    const deliveryId = await stage.publish(posthorn)
    await stage.reaches(deliveryId, { state: 'completed', attempts: 1 }, 30_000)
    expect(await posthorn.stop()).to.equal(0)
  })

  it('is out of reach without one', async () => {
    const { TEMPORAL_TLS_CA_FILE } = env as { TEMPORAL_TLS_CA_FILE: string }
    const posthorn = await stage.start({
      temporalAddress: address(),
      env: { TEMPORAL_TLS_CA_FILE },
      awaitEngine: false,
    })
    expect((await posthorn.call('GET', '/readyz')).json).to.deep.equal({ database: 'up', engine: 'down' })
    expect(await posthorn.stop()).to.equal(0)
  })
})

describe('a Temporal that gives Posthorn no operator rights', () => {
  const stage = useStage()
  let gate: TemporalGate

  before(async () => {
    gate = await createTemporalGate(['ListSearchAttributes', 'AddSearchAttributes'])
  })
  after(() => gate.close())

  it('is warned about with the attributes that have to exist, and delivers', async () => {
    const posthorn = await stage.start({
      temporalAddress: gate.address,
      env: { FIRST_ATTEMPT: 'workflow' },
    })
    const deliveryId = await stage.publish(posthorn)
    await stage.reaches(deliveryId, { state: 'completed', attempts: 1 })
    const lines = posthorn.log().split('\n')
    const warnings = lines.filter((line) => line.includes('"temporal.registration_refused"'))
    expect(warnings).to.have.length(1)
    expect(JSON.parse(warnings[0]!)).to.deep.include({
      needed: ['OrganisationId', 'WebhookId', 'EventKey', 'DeliveryState'],
    })
    expect(await posthorn.stop()).to.equal(0)
  })
})
