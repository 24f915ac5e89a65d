import { writeFileSync } from 'node:fs'
import { expect } from 'chai'
import { parse } from 'yaml'
import { SETTINGS } from '../../src/config/settings.ts'
import type { GuardedProcess } from '../../src/dev/guarded-process.ts'
import { findOnPath } from '../../src/dev/provision.ts'
import { SEARCH_ATTRIBUTE_NAMES } from '../../src/temporal/namespace.ts'
import { findDumpPrograms } from '../helpers/database/pg-dump.ts'
import { type CodeBlock, codeBlocksOf, readDocument } from '../helpers/documents/documents.ts'
import { eventually } from '../helpers/eventually.ts'
import { PROVIDE_TIMEOUT_MS, providePromtool } from '../helpers/manifests/go-tools.ts'
import { createMachine, type Machine, unitValue } from '../helpers/production/machine.ts'
import { createReceiver, type Receiver } from '../helpers/receivers/receiver.ts'

/** `npm ci` downloads what is not in npm's cache. */
const BLOCK_TIMEOUT_MS = 600_000

type Printed = { stdout: string; stderr: string }
/** What a reader has done before a block, and what is true after it. */
type Step = { before?: () => Promise<unknown>; after?: (printed: Printed) => unknown }

const PUBLISH = `curl -fsS "$API/events" -H "x-api-key: $KEY" -H 'content-type: application/json' \\
  -d '{"event":"invoice:paid","data":{"invoice":{"id":"inv_2"},"payment":{"id":"pay_2"}}}'`

const blocks = codeBlocksOf(readDocument('docs/production.md'))

describe('docs/production.md, executed from top to bottom', function () {
  this.timeout(BLOCK_TIMEOUT_MS + 120_000)
  const programs = findDumpPrograms()
  if (programs === null) {
    it.skip('PG_DUMP IS NOT INSTALLED: nothing of this was tried (apt-get install postgresql-client)')
    return
  }
  let machine: Machine
  let receiver: Receiver
  let promtool: string | null
  let service: GuardedProcess
  let unit = ''
  let ciKey = ''
  let isFailing = false
  let hasFailed = false

  before(async function () {
    this.timeout(PROVIDE_TIMEOUT_MS)
    promtool = await providePromtool()
    receiver = await createReceiver({ answer: () => (isFailing ? 500 : 200) })
    machine = await createMachine({
      programs,
      tools: promtool === null ? {} : { promtool },
      env: { RECEIVER_URL: receiver.url },
    })
  })
  after(async () => {
    await machine.close()
    await receiver.close()
  })

  const run = (commands: string) => machine.run(machine.here(commands))
  const psql = async (url: string, sql: string): Promise<string> =>
    (await run(`psql "${url}" --no-align --tuples-only --command "${sql}"`)).stdout.trim()
  const isReady = () =>
    run('curl -fsS --retry 30 --retry-delay 1 --retry-all-errors http://127.0.0.1:9464/readyz')
  const restart = async (): Promise<void> => {
    await service.stop()
    service = await machine.start(unit)
    await isReady()
  }

  const STEPS: Record<string, Step> = {
    'Create the role, the database and the namespace 1': {
      async after() {
        const namespace = await run('temporal operator namespace describe --namespace "$TEMPORAL_NAMESPACE"')
        expect(namespace.stdout).to.match(/RetentionTtl +72h/)
      },
    },
    'Write the settings 2': {
      // The block of another section is the file.
      before() {
        const seed = blocks.find(({ language }) => language === 'json')
        writeFileSync(machine.path('/etc/posthorn/organisations.json'), seed?.text ?? '')
        return Promise.resolve()
      },
      after({ stdout }) {
        expect(stdout).to.include('Seeded 1 organisation(s) with 1 member(s).')
        ciKey = /phk_\w+/.exec(stdout)?.[0] ?? ''
      },
    },
    'Start the service 3': {
      after({ stdout }) {
        expect(stdout)
          .to.include('{"database":"up","engine":"up"}')
          .and.match(/^0 error\(s\), /m)
      },
    },
    'Deliver a first event 1': {
      after: ({ stdout }) => expect(stdout).to.include('"signingSecret":"').and.include('"deliveries":[{'),
    },
    'Deliver a first event 2': {
      before: () =>
        eventually(async () => {
          expect(await psql('$DATABASE_URL', 'SELECT state FROM delivery')).to.equal('completed')
        }),
      after: ({ stdout }) => expect(stdout).to.include('"outcome":"succeeded"'),
    },
    'API keys 1': {
      after: ({ stdout }) => expect(stdout).to.match(/^.*\bbilling\b.*\bmem_an\b.*$/m),
    },
    'Operator keys 1': {
      async after() {
        await restart()
        const settings = await run('. /etc/posthorn/posthorn.env; printf %s "$POSTHORN_OPERATOR_KEYS"')
        const [{ secret } = { secret: '' }] = SETTINGS.operatorKeys.parse(settings.stdout)
        const answer = await run(
          `curl -fsS http://127.0.0.1:3000/api/operator/organisations -H 'x-operator-key: ${secret}'`,
        )
        expect(answer.stdout).to.include('"org_camping"')
      },
    },
    'Rotating the encryption key 1': {
      before: async () => {
        await run(
          `sed -i "s/^POSTHORN_ENCRYPTION_KEYS=/&k2:$(openssl rand -hex 32),/" /etc/posthorn/posthorn.env
          set -a; . /etc/posthorn/posthorn.env; set +a`,
        )
        await restart()
      },
    },
    'Rotating the encryption key 2': {
      after: ({ stdout }) => expect(stdout).to.match(/^ k2 +\| +1$/m),
    },
    'Traces 3': {
      async after() {
        const collector = await createReceiver()
        const { origin } = new URL(collector.url)
        await run(`sed -i 's#^OTEL_EXPORTER_OTLP_ENDPOINT=.*#OTEL_EXPORTER_OTLP_ENDPOINT=${origin}#' \\
            /etc/posthorn/posthorn.env
          KEY=${ciKey}`)
        await restart()
        await run(PUBLISH)
        await eventually(() => {
          const exported = collector.posts.filter(({ path }) => path === '/v1/traces')
          const text = exported.map(({ body }) => body.toString()).join('\n')
          expect(text).to.include('"publish invoice:paid"').and.include('"POST"').and.include('"posthorn"')
        })
        await run(`sed -i -e '/^NODE_OPTIONS=/d' -e '/^OTEL_/d' /etc/posthorn/posthorn.env`)
        await restart()
        await collector.close()
      },
    },
    'Push messages 1': {
      after: ({ stdout }) => SETTINGS.vapidPrivateKey.parse(stdout.trim()),
    },
    'Retention 1': {
      async after() {
        const { stdout } = await run('temporal schedule describe --schedule-id posthorn-retention')
        expect(stdout)
          .to.match(/Paused +false/)
          .and.include('audit is over')
      },
    },
    'Poolers 1': {
      async after() {
        expect(await psql('$DATABASE_URL', 'SHOW lock_timeout')).to.equal('5s')
      },
    },
    'Search attributes by hand 1': {
      async before() {
        await run(`temporal operator namespace create --namespace by-hand
          KEPT=$TEMPORAL_NAMESPACE TEMPORAL_NAMESPACE=by-hand`)
        // A namespace that was just made is not known everywhere.
        await run('until temporal operator search-attribute list >/dev/null 2>&1; do sleep 0.2; done')
      },
      async after() {
        const { stdout } = await run('temporal operator search-attribute list; TEMPORAL_NAMESPACE=$KEPT')
        for (const name of SEARCH_ATTRIBUTE_NAMES) expect(stdout).to.match(new RegExp(`${name} +Keyword`))
      },
    },
    'Back up and restore 1': {
      // A delivery that waits.
      async before() {
        isFailing = true
        await run(`KEY=${ciKey}
          ${PUBLISH}`)
        await eventually(async () => {
          const states = await psql('$DATABASE_URL', 'SELECT state FROM delivery ORDER BY id')
          expect(states).to.equal('completed\ncompleted\nwaiting')
        })
      },
    },
    'Back up and restore 2': {
      async before() {
        await service.stop()
        await run('RESTORED_URL="${DATABASE_URL%/*}/posthorn_restored"')
      },
      async after() {
        expect(await psql('$RESTORED_URL', 'SELECT count(*) FROM delivery')).to.equal('3')
      },
    },
    'Back up and restore 4': {
      after: () =>
        eventually(async () => {
          const { stdout } = await run(
            `temporal workflow count --query 'ExecutionStatus = "Terminated" AND WorkflowType = "deliverEvent"'`,
          )
          expect(stdout).to.match(/Total: 1$/m)
        }),
    },
    'Workers with versions 1': {
      // With the restored database and the new namespace, as "Back up and restore" ends.
      async before() {
        await run(`sed -i -e 's/posthorn$/posthorn_restored/' \\
            -e 's/^TEMPORAL_NAMESPACE=.*/TEMPORAL_NAMESPACE=posthorn-restored/' /etc/posthorn/posthorn.env
          set -a; . /etc/posthorn/posthorn.env; set +a
          posthorn migrate`)
        isFailing = false
        await machine.start(unit, 'worker', { TEMPORAL_WORKER_BUILD_ID: '1.0.0', METRICS_PORT: '' })
        await machine.start(unit, 'worker', { TEMPORAL_WORKER_BUILD_ID: '1.1.0', METRICS_PORT: '' })
        await eventually(async () => {
          const { stdout } = await run('temporal worker deployment describe --name posthorn || true')
          expect(stdout).to.include('1.0.0').and.include('1.1.0')
        })
      },
      async after() {
        const { stdout } = await run('temporal worker deployment describe --name posthorn')
        expect(stdout).to.match(/CurrentVersionBuildID +1\.0\.0/)
        await eventually(async () => {
          const states = await psql('$DATABASE_URL', 'SELECT DISTINCT state FROM delivery')
          expect(states).to.equal('completed')
        }, 60_000)
      },
    },
  }

  /** What is executed of a block, by its language. */
  const EXECUTE: Record<string, (block: CodeBlock) => Promise<Printed>> = {
    sh: ({ text }) => machine.run(machine.here(text), BLOCK_TIMEOUT_MS),
    async console({ text }) {
      const lines = text.trimEnd().split('\n')
      const commands = lines.filter((line) => line.startsWith('$ ')).map((line) => line.slice(2))
      expect(commands).to.not.be.empty
      const printed = await run(commands.join('\n'))
      const withoutNumbers = (output: string): string => output.trim().replaceAll(/\b\d+\b/g, 'N')
      const shown = lines.filter((line) => !line.startsWith('$ ')).join('\n')
      expect(withoutNumbers(printed.stdout)).to.equal(withoutNumbers(shown))
      return printed
    },
    sql: ({ text }) => run(`psql "$DATABASE_URL" --set ON_ERROR_STOP=1 <<'SQL'\n${text}SQL`),
    async ini({ text }) {
      unit = machine.here(text)
      const graceMs = SETTINGS.shutdownGraceMs.parse(SETTINGS.shutdownGraceMs.fallback ?? '')
      expect(Number(unitValue(unit, 'TimeoutStopSec')) * 1_000).to.be.at.least(graceMs + 10_000)
      expect(unitValue(unit, 'Restart')).to.equal('always')
      service = await machine.start(unit)
      const file = machine.path('/etc/posthorn.service')
      writeFileSync(file, unit)
      if (findOnPath('systemd-analyze', process.env) === null) return { stdout: '', stderr: '' }
      // It examines what the unit depends on too.
      const verified = await run(`systemd-analyze verify ${file} 2>&1 | grep posthorn || true`)
      expect(verified.stdout).to.equal('')
      return verified
    },
    yaml({ text }) {
      const document = parse(text) as {
        scrape_configs?: { static_configs: { targets: string[] }[] }[]
      }
      const { scrape_configs: jobs } = document
      if (jobs === undefined) {
        // The dynamic configuration of a Temporal server: what the one of docker-compose.yml has.
        expect(parse(readDocument('temporal-config/dynamicconfig.yaml'))).to.have.keys(Object.keys(document))
        return Promise.resolve({ stdout: '', stderr: '' })
      }
      const targets = jobs.flatMap((job) => job.static_configs).flatMap((each) => each.targets)
      const metricsPort = /^METRICS_PORT=(\d+)$/m.exec(readDocument('docs/production.md'))?.[1] ?? ''
      expect(readDocument('docker-compose.yml')).to.include(`METRICS_PORT: '${metricsPort}'`)
      expect(targets).to.not.be.empty
      for (const target of targets) expect(target).to.match(new RegExp(`:${metricsPort}$`))
      writeFileSync(machine.path('/etc/prometheus/prometheus.yml'), machine.here(text))
      return run(`curl -fsS http://${targets[0]}/metrics`)
    },
    js({ text }) {
      writeFileSync(machine.path('/etc/posthorn/traces/register.mjs'), text)
      return Promise.resolve({ stdout: '', stderr: '' })
    },
    json({ text }) {
      expect(JSON.parse(text)).to.have.property('organisations')
      return Promise.resolve({ stdout: '', stderr: '' })
    },
    '': ({ text }) => {
      const variables: string[] = Object.values(SETTINGS).map(({ variable }) => variable)
      for (const line of text.trimEnd().split('\n'))
        expect([...variables, 'POSTGRES_PASSWORD'], line).to.include(
          line.split('=')[0]?.replace(/_FILE$/, ''),
        )
      return Promise.resolve({ stdout: '', stderr: '' })
    },
  }

  const titles = new Map<CodeBlock, string>()
  for (const block of blocks) {
    const above = blocks.filter(({ heading, line }) => heading === block.heading && line <= block.line)
    titles.set(block, `${block.heading} ${above.length}`)
  }

  it('has a step for no block that is not there', () => {
    expect([...titles.values()]).to.include.members(Object.keys(STEPS))
  })

  for (const block of blocks.filter(({ notExecuted }) => notExecuted === null)) {
    const title = titles.get(block) ?? ''
    it(`has a block that works in line ${block.line}: ${title}`, async function () {
      if (hasFailed) this.skip()
      if (promtool === null && block.text.includes('promtool')) this.skip()
      const execute = EXECUTE[block.language]
      if (execute === undefined) throw new Error(`a block of ${block.language} is not executed: mark it`)
      hasFailed = true
      await STEPS[title]?.before?.()
      const printed = await execute(block)
      await STEPS[title]?.after?.(printed)
      hasFailed = false
    })
  }
})
