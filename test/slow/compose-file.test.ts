import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { PROVIDE_TIMEOUT_MS, provideReader } from '../helpers/manifests/go-tools.ts'
import { runProgram } from '../helpers/manifests/run-program.ts'

type Service = {
  secrets?: { source: string }[]
  environment?: Record<string, string | null>
  depends_on?: Record<string, { condition: string }>
  healthcheck?: { test: string[] }
}

const FILE = fileURLToPath(new URL('../../docker-compose.yml', import.meta.url))

/** What has to be filled in, in `.env`. */
const FILLED_IN = {
  POSTGRES_PASSWORD: 'secret',
  POSTHORN_ENCRYPTION_KEYS_FILE: './secrets/encryption-keys',
}

describe('docker-compose.yml, as docker compose reads it', function () {
  let reader: string

  before(async function () {
    this.timeout(PROVIDE_TIMEOUT_MS)
    const path = await provideReader('compose')
    if (path === null) this.skip()
    reader = path
  })

  it('is valid, and has all services', () => {
    const { status, stdout, stderr } = runProgram(reader, [FILE], { env: FILLED_IN })
    expect(status, stderr).to.equal(0)
    const { services, secrets } = JSON.parse(stdout) as {
      services: Record<string, Service>
      secrets: Record<string, { file: string }>
    }
    expect(Object.keys(services)).to.have.members([
      'postgres',
      'temporal-schema',
      'temporal',
      'temporal-namespace',
      'temporal-ui',
      'migrate',
      'api',
      'worker',
    ])
    const { api, worker } = services
    expect(worker?.environment).to.include({
      DATABASE_URL: 'postgres://posthorn:secret@postgres:5432/posthorn',
      POSTHORN_ENCRYPTION_KEYS_FILE: '/run/secrets/encryption-keys',
      TEMPORAL_ADDRESS: 'temporal:7233',
    })
    expect(worker?.secrets?.map(({ source }) => source)).to.include('encryption-keys')
    expect(secrets['encryption-keys']?.file).to.match(/\/secrets\/encryption-keys$/)
    expect(secrets['smtp-password']?.file).to.equal('/dev/null')
    expect(worker?.depends_on).to.have.nested.property('migrate.condition', 'service_completed_successfully')
    for (const service of [api, worker])
      expect(service?.healthcheck?.test.at(-1)).to.match(/^if \(!\(await fetch\('http.*\/readyz'\)\)\.ok\)/)
  })
})
