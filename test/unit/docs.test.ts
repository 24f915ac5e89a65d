import { execFileSync } from 'node:child_process'
import { createECDH } from 'node:crypto'
import { existsSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { COMMANDS } from '../../src/cli/command-line/commands.ts'
import { findCommand } from '../../src/cli/command-line/read-arguments.ts'
import { SWEEP_DELAY_MS, TIMEOUT_SWEEP_DELAY_MS } from '../../src/deliveries/protocol/sweep.ts'
import { FAILURE_CODES } from '../../src/domain/attempt-outcome.ts'
import { DELIVERY_STATES } from '../../src/domain/delivery-state.ts'
import { PROBLEMS } from '../../src/domain/problems.ts'
import { FIELD_PROBLEMS } from '../../src/json-schema/field-errors.ts'
import { RETRY_WAITS_MS } from '../../src/domain/retry-schedule.ts'
import { PublishEventSchema } from '../../src/http/schemas/event.ts'
import { SETTINGS } from '../../src/config/settings.ts'
import { SEARCH_ATTRIBUTE_NAMES } from '../../src/temporal/namespace.ts'
import { headingsOf, readDocument as read, tableBelow } from '../helpers/documents/documents.ts'
import { argumentsOf } from '../helpers/cli/run-cli.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))

/** What `npm start` and `npm test` read themselves, besides the settings. */
const NPM_START_VARIABLES = [
  'PORT',
  'TEMPORAL_PORT',
  'TEMPORAL_UI_PORT',
  'POSTHORN_DATA',
  'POSTHORN_SEED',
  'TEMPORAL_ADDRESS',
  'TEMPORAL_CLI',
  'TEMPORAL_TEST_SERVER',
  'POSTHORN_CACHE',
]

const UNIT_MS: Record<string, number> = { second: 1_000, minute: 60_000, hour: 3_600_000 }

const README_MAX_LINES = 250
const MAX_COLUMNS = 120

const api = read('docs/api.md')
const configuration = read('docs/configuration.md')
const production = read('docs/production.md')
const receiving = read('docs/receiving.md')
const troubleshooting = read('docs/troubleshooting.md')
const documents = [
  'README.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  'SECURITY.md',
  'deploy/helm/posthorn/README.md',
  ...filesUnder('docs').filter((file) => file.endsWith('.md')),
]

describe('the documentation', () => {
  for (const file of documents) {
    const text = read(file)

    it(`links from ${file} only to files and headings that exist`, () => {
      for (const [, target = ''] of text.matchAll(/(?:\]\(|^\[[\w ]+\]: )([^)\s]+)/gm)) {
        if (/^[a-z]+:/.test(target)) continue
        const [path = '', heading] = target.split('#')
        const linked = path === '' ? file : join(dirname(file), path)
        expect(existsSync(join(ROOT, linked)), `${file}: ${target}`).to.equal(true)
        if (heading !== undefined) expect(headingsOf(read(linked)), `${file}: ${target}`).to.include(heading)
      }
    })

    it(`names in ${file} only files and folders that exist`, () => {
      const named = /`((?:src|workflows|activities|temporal-config|docs)\/[^`*\s]*|test\/[^`*\s]+\.\w+)`/g
      for (const [, path = ''] of text.matchAll(named))
        expect(existsSync(join(ROOT, path)), path).to.equal(true)
    })

    it(`keeps the prose of ${file} at ${MAX_COLUMNS} columns`, () => {
      // A table has a line for each row, and a command is pasted as it is.
      const prose = text.replaceAll(/^```.*?^```/gms, '').split('\n')
      for (const line of prose.filter((line) => !line.startsWith('|')))
        expect(line.length, line).to.be.at.most(MAX_COLUMNS)
    })

    it(`names in ${file} only npm scripts that exist`, () => {
      const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> }
      for (const [, script = ''] of text.matchAll(/npm run (?:-s )?([\w:-]+)/g))
        expect(scripts).to.have.property(script)
    })
  }
})

describe('the commands in the documentation', () => {
  const shell = /^\s*(?:npx |npm run (?:-s )?)?posthorn (?:-- )?([a-z].*?)(?: *[|>#;].*)?$/gm
  for (const file of documents) {
    const text = read(file)
    const typed = [...text.matchAll(/^```sh\n(.*?)^```/gms)].flatMap(([, block = '']) =>
      [...block.replaceAll('\\\n', ' ').matchAll(shell)].map(([, line = '']) => line),
    )

    it(`are ones of posthorn, with options that it has, in ${file}`, () => {
      for (const [, line = ''] of text.matchAll(
        /`posthorn ([a-z-]+(?: (?:create|list|revoke|check|print))?)[^`]*`/g,
      ))
        expect(() => findCommand(COMMANDS, [...line.split(' '), '--help']), line).to.not.throw()
      for (const line of typed) expect(argumentsOf(line.trim().split(/\s+/)).problems, line).to.deep.equal([])
    })
  }
})

describe('README.md', () => {
  const lines = read('README.md').trimEnd().split('\n')

  it('has at most 250 lines of at most 120 columns', () => {
    expect(lines.length).to.be.at.most(README_MAX_LINES)
    for (const line of lines) expect(line.length, line).to.be.at.most(MAX_COLUMNS)
  })
})

describe('docs/configuration.md', () => {
  it('lists what npm start and npm test read', () => {
    const listed = firstTwoColumns(configuration, '## npm start and npm test').map(([variable]) => variable)
    expect(listed).to.deep.equal(NPM_START_VARIABLES.map((variable) => `\`${variable}\``))
  })

  it('lists what docker-compose.yml reads besides the settings', () => {
    const settings: string[] = Object.values(SETTINGS).map(({ variable }) => variable)
    const interpolated = [...read('docker-compose.yml').matchAll(/\$\{([A-Z_]+)/g)].map(
      ([, variable = '']) => variable,
    )
    const own = new Set(interpolated.filter((variable) => !settings.includes(variable)))
    const listed = firstTwoColumns(configuration, '## docker compose').map(([variable = '']) =>
      variable.replaceAll('`', ''),
    )
    expect(listed).to.have.members([...own])
  })
})

describe('docs/api.md', () => {
  it('explains every delivery state', () => {
    const listed = firstTwoColumns(api, '## Delivery states').map(([state]) => state)
    expect(listed).to.deep.equal(DELIVERY_STATES.map((state) => `\`${state}\``))
  })

  it('shows every field of an event that is published', () => {
    const { properties, required } = PublishEventSchema
    const rows = tableBelow(api, '## Publishing')
    expect(rows.map(([field]) => field)).to.deep.equal(Object.keys(properties).map((name) => `\`${name}\``))
    const asked = rows.filter(([, , isRequired]) => isRequired === 'yes').map(([field]) => field)
    expect(asked).to.deep.equal(required.map((name) => `\`${name}\``))
  })

  it('has every problem code and field code of the sources, and no other', () => {
    const sources = filesUnder('src')
      .filter((file) => file.endsWith('.ts') && file !== 'src/domain/problems.ts')
      .map(read)
      .join('\n')
    const problemPattern = /(?:ProblemError|badRequest|conflict)\(\s*'(\w+)'|PROBLEMS\.(\w+)/g
    const problems = [...sources.matchAll(problemPattern)].map(([, code, property]) => code ?? property)
    expect(Object.keys(PROBLEMS)).to.have.members([...new Set(problems)])
    const fieldPattern = /\bcode: '(\w+)'|\b(?:refuse|atLeast|atMost|compared)\(\s*'(\w+)'/g
    const fields = [...sources.matchAll(fieldPattern)]
      .map(([, literal, argument]) => literal ?? argument ?? '')
      .filter((code) => !(code in PROBLEMS))
    expect(Object.keys(FIELD_PROBLEMS)).to.have.members([...new Set(fields)])
  })

  it('orders the problem codes by status', () => {
    const statuses = Object.values(PROBLEMS).map(({ status }) => status)
    expect(statuses).to.deep.equal([...statuses].sort((one, other) => one - other))
  })
})

describe('the guarantee of overflow about workflows', () => {
  const PROMISE = 'every delivery that was attempted has its workflow in the end'

  for (const file of ['README.md', 'docs/architecture.md', 'docs/performance.md'])
    it(`has the same words in ${file}`, () => {
      const text = read(file).replaceAll(/\s+/g, ' ')
      expect(text).to.include(PROMISE)
      expect(text).to.not.match(
        /every delivery (has|is) (a|one durable Temporal) workflow|(workflows|those)[^.]* given up/,
      )
    })
})

describe('docs/receiving.md', () => {
  it('shows the retry schedule as it is', () => {
    const [first, ...retries] = firstTwoColumns(receiving, '## Retry schedule')
    expect(first).to.deep.equal(['1', 'none'])
    expect(retries.map(([number]) => Number(number))).to.deep.equal(
      RETRY_WAITS_MS.map((_, index) => index + 2),
    )
    expect(retries.map(([, wait = '']) => toMs(wait))).to.deep.equal(RETRY_WAITS_MS)
  })

  it('shows every header that an attempt is sent with', () => {
    const source = `${read('src/outbound/signed-headers.ts')}${read('src/outbound/exchange.ts')}`
    const shown = firstTwoColumns(receiving, '## The request').map(([header = '']) =>
      header.replaceAll('`', ''),
    )
    expect(shown).to.include.members([
      'Content-Type',
      'X-Webhook-Event-ID',
      'X-Webhook-Signature',
      'User-Agent',
    ])
    for (const [, header = ''] of source.matchAll(/'(X-Webhook-[\w-]+)'/g)) expect(shown).to.include(header)
  })
})

describe('npm start and npm test', () => {
  const places = [
    'src/cli/dev.ts',
    'test/run.ts',
    ...filesUnder('src/dev'),
    'test/helpers/runner/time-skipping-server.ts',
  ]
  const sources = places.map(read).join('\n')

  it('read no variable that is neither a setting nor documented', () => {
    const settings: string[] = Object.values(SETTINGS).map(({ variable }) => variable)
    const pattern = /(?:env\['|portOf\('|namedByEnvironment\(')([A-Z_]+)'/g
    const found = [...sources.matchAll(pattern)].map(([, variable = '']) => variable)
    expect(found).to.not.be.empty
    // The system's, and what .ci/run and the test runner use between them.
    const internal = ['PATH', 'POSTHORN_TEST_COUNTS', 'POSTHORN_TEST_POSTGRES', 'POSTHORN_TEST_FURTHER']
    expect([...NPM_START_VARIABLES, ...settings, ...internal]).to.include.members(found)
  })

  it('read every variable that is documented', () => {
    for (const variable of NPM_START_VARIABLES)
      expect(sources, variable).to.match(new RegExp(`\\b${variable}\\b`))
  })
})

describe('docs/production.md and docs/troubleshooting.md', () => {
  it('name a test for each fault', () => {
    const shown = tableBelow(production, '## What is promised under each fault').map((cells) => cells.at(-1))
    for (const test of shown)
      expect(existsSync(join(ROOT, `test/${test?.replaceAll('`', '')}.test.ts`)), test).to.equal(true)
  })

  it('make a VAPID key that is accepted with its one line', () => {
    const [, line = ''] =
      /<!-- vapid:start -->\s*```sh\n(.*)\n```\s*<!-- vapid:end -->/.exec(production) ?? []
    const printed = execFileSync('sh', ['-euc', line], { encoding: 'utf8' }).trim()
    const key = SETTINGS.vapidPrivateKey.parse(printed)
    const pair = createECDH('prime256v1')
    pair.setPrivateKey(Buffer.from(key, 'base64url'))
    expect(pair.getPublicKey()).to.have.length(65)
  })

  it('say when the sweeper starts a missing workflow again', () => {
    const text = troubleshooting.replaceAll(/\s+/g, ' ')
    expect([SWEEP_DELAY_MS, TIMEOUT_SWEEP_DELAY_MS]).to.deep.equal([15 * 1_000, UNIT_MS['minute']])
    expect(text).to.include(
      '15 seconds after its next attempt was due, or a minute where the last one timed out, the sweeper',
    )
  })

  it('explain every log event', () => {
    const sources = filesUnder('src').map(read).join('\n')
    const logged = new Set([...sources.matchAll(/\bevent: '([a-z_]+\.[a-z_]+)'/g)].map(([, name]) => name))
    const [, log = ''] = /^## Log$(.*?)^## /ms.exec(troubleshooting) ?? []
    const items = [...log.matchAll(/^- `([\w.]+)`(?: \((.*?)\))?: /gm)]
    const levels = new Map(items.map(([, name, level = 'warn']) => [name, level]))
    expect(items.map(([, name]) => name)).to.have.members([...logged])
    for (const [, level = '', name = ''] of sources.matchAll(/logger\.(\w+)\(\s*\{ event: '([\w.]+)'/g))
      expect(levels.get(name), name).to.include(level)
  })

  it('name every failure code and every search attribute', () => {
    for (const name of [...FAILURE_CODES, ...SEARCH_ATTRIBUTE_NAMES])
      expect(troubleshooting).to.include(`\`${name}\``)
  })
})

/** Paths of all files in a folder and below it, from the root. */
function filesUnder(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(ROOT.length))
}

/** The first two cells of each row of the first table below a heading. */
function firstTwoColumns(text: string, heading: string): string[][] {
  return tableBelow(text, heading).map((cells) => cells.slice(0, 2))
}

/** `5 minutes` in ms. */
function toMs(wait: string): number {
  const [, amount = '', unit = ''] = /^(\d+) (\w+?)s?$/.exec(wait) ?? []
  return Number(amount) * (UNIT_MS[unit] ?? Number.NaN)
}
