import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { SETTINGS } from '../../src/config/settings.ts'

type DatabaseRelay = { variable: string; value: string; commentedOut: boolean; comment: string }

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const lines = readLines(read('.env.example'))
const byVariable = new Map(lines.map((line) => [line.variable, line]))
const settings = Object.values(SETTINGS)
const variables: string[] = settings.map(({ variable }) => variable)

/** Without these nothing runs under docker compose. */
const TO_FILL_IN = ['POSTGRES_PASSWORD', 'POSTHORN_ENCRYPTION_KEYS_FILE']

describe('.env.example', () => {
  it('documents every variable once', () => {
    expect(byVariable.size).to.equal(lines.length)
  })

  it('documents the settings in their order, in their own words', () => {
    expect(lines.slice(0, settings.length).map(({ variable }) => variable)).to.deep.equal(variables)
    for (const { variable, description } of settings)
      expect(byVariable.get(variable)?.comment, variable).to.match(startingWith(description))
  })

  it('shows the default of every setting that has one', () => {
    for (const { variable, fallback } of settings) {
      if (fallback !== undefined) expect(byVariable.get(variable)?.value, variable).to.equal(fallback)
    }
  })

  it('shows a database URL that would be accepted', () => {
    const url = byVariable.get('DATABASE_URL')?.value ?? ''
    expect(SETTINGS.databaseUrl.parse(url)).to.equal(url)
  })

  it('sets nothing when it is copied, and asks for what has to be filled in', () => {
    const open = lines.filter(({ commentedOut }) => !commentedOut)
    expect(open.map(({ variable }) => variable)).to.have.members(TO_FILL_IN)
    expect(open.map(({ value }) => value)).to.deep.equal(['', ''])
  })

  it('documents what docker-compose.yml reads, with its defaults', () => {
    const interpolated = [...read('docker-compose.yml').matchAll(/\$\{([A-Z_]+)(?::-([^$}]*))?/g)]
    expect(interpolated).to.not.be.empty
    for (const [, variable = '', fallback = ''] of interpolated) {
      expect(byVariable.has(variable), variable).to.equal(true)
      if (fallback !== '') expect(byVariable.get(variable)?.value, variable).to.equal(fallback)
    }
  })

  it('documents what npm start and npm test read', () => {
    const found = variablesOfDevelopment()
    expect(found).to.include.members(['POSTHORN_DATA', 'TEMPORAL_PORT', 'TEMPORAL_CLI', 'POSTHORN_CACHE'])
    for (const variable of found) expect(byVariable.has(variable), variable).to.equal(true)
  })

  it('documents no variable that nothing reads', () => {
    const fromCompose = [...read('docker-compose.yml').matchAll(/\$\{([A-Z_]+)/g)].map(([, name]) => name)
    const known = [...variables, ...fromCompose, ...variablesOfDevelopment()]
    expect(known).to.include.members([...byVariable.keys()])
  })
})

/** Variables of our own that the development code takes from the environment. */
function variablesOfDevelopment(): string[] {
  const files = [
    'src/cli/dev.ts',
    'test/helpers/runner/time-skipping-server.ts',
    ...readdirSync(`${ROOT}src/dev`)
      .map((name) => `src/dev/${name}`)
      .filter((name) => /\.m?[jt]s$/.test(name)),
  ]
  const source = files.map(read).join('\n')
  const taken = source.matchAll(
    /(?:env\['|portOf\('|namedByEnvironment\(')([A-Z_]+)'|\b(POSTHORN_[A-Z]+): \w+[,} ].*= env/g,
  )
  return [...new Set([...taken].map(([, one, other]) => one ?? other ?? ''))].filter(
    (name) => name !== 'PATH',
  )
}

/** Assignments, commented out or not, each with the comment right above it. */
function readLines(text: string): DatabaseRelay[] {
  let comment: string[] = []
  return text.split('\n').flatMap((line) => {
    const [, hash, variable, value] = /^(#?)([A-Z][A-Z_]*)=(.*)$/.exec(line) ?? []
    if (variable !== undefined && value !== undefined)
      return [{ variable, value, commentedOut: hash === '#', comment: comment.splice(0).join('\n') }]
    if (line.startsWith('# ')) comment.push(line.slice(2))
    if (line === '') comment = []
    return []
  })
}

function startingWith(text: string): RegExp {
  return new RegExp(`^${text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')}(\n|$)`)
}

function read(path: string): string {
  return readFileSync(`${ROOT}${path}`, 'utf8')
}
