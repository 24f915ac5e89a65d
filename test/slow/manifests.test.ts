import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { parse } from 'yaml'
import { NEWER_NODES, OLDER_RELEASES } from '../../src/dev/npm-programs.ts'
import { readDocument } from '../helpers/documents/documents.ts'
import { PROVIDE_TIMEOUT_MS, provideActionlint, provideReader } from '../helpers/manifests/go-tools.ts'
import { runProgram } from '../helpers/manifests/run-program.ts'

type Service = {
  secrets?: { source: string }[]
  environment?: Record<string, string | null>
  depends_on?: Record<string, { condition: string }>
  healthcheck?: { test: string[] }
}

type Workflow = { jobs: Record<string, { strategy?: { matrix: Record<string, number[]> } }> }

const ROOT = fileURLToPath(new URL('../../', import.meta.url))

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
    const { status, stdout, stderr } = runProgram(reader, [`${ROOT}docker-compose.yml`], { env: FILLED_IN })
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

describe('the workflows for GitHub', () => {
  it('pass actionlint', async function () {
    this.timeout(PROVIDE_TIMEOUT_MS)
    const actionlint = await provideActionlint()
    if (actionlint === null) return this.skip()
    const files = ['test', 'release'].map((name) => `.github/workflows/${name}.yml`)
    expect(runProgram(actionlint, files, { cwd: ROOT })).to.include({ status: 0, stdout: '', stderr: '' })
  })

  it('test on every supported release of Node.js and PostgreSQL', () => {
    const { jobs } = parse(readDocument('.github/workflows/test.yml')) as Workflow
    expect(jobs['node']?.strategy?.matrix).to.deep.equal({ node: [20, ...NEWER_NODES] })
    expect(jobs['postgres']?.strategy?.matrix).to.deep.equal({ postgres: OLDER_RELEASES })
  })
})
