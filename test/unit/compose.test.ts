import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { parse } from 'yaml'
import { COMMANDS } from '../../src/cli/command-line/commands.ts'
import { SETTINGS } from '../../src/config/settings.ts'
import { SEARCH_ATTRIBUTE_NAMES } from '../../src/temporal/namespace.ts'

/** The parts of a compose service that promises are made about. `null` hands a variable over from `.env`. */
type Service = {
  image: string
  build?: string
  command?: string[]
  entrypoint?: string[]
  restart?: string
  environment?: Record<string, string | null>
  secrets?: string[]
  volumes?: string[]
  ports?: string[]
  networks: string[]
  depends_on?: Record<string, { condition: string }>
  healthcheck?: { test: string[] }
  stop_grace_period?: string
}
type Compose = {
  services: Record<string, Service>
  volumes: Record<string, unknown>
  networks: Record<string, { internal?: boolean } | null>
  secrets: Record<string, { file: string }>
}

const ROOT = fileURLToPath(new URL('../../', import.meta.url))

/** Of a pooler, a Temporal Cloud or a guarded cluster, and of the relay, next to the platform's database. */
const NOT_NEEDED_HERE = [
  'DATABASE_POOLER',
  'RELAY_DATABASE_URL',
  'RELAY_OPERATOR_KEY',
  'RELAY_KEEP_HOURS',
  'TEMPORAL_TLS_CA_FILE',
  'TEMPORAL_TLS_CERT_FILE',
  'TEMPORAL_TLS_KEY_FILE',
  'TEMPORAL_API_KEY',
]

/** What only the API reads: no other process is to hold the operator keys. */
const OF_THE_LISTENER = ['HOST', 'PORT', 'POSTHORN_OPERATOR_KEYS']

/** Mounted as files: no process has them in its environment, and a setting without a file is empty. */
const AS_FILES = [
  'POSTHORN_ENCRYPTION_KEYS',
  'POSTHORN_OPERATOR_KEYS',
  'SMTP_PASSWORD',
  'VAPID_PRIVATE_KEY',
].map((variable) => `${variable}_FILE`)

/** Read from `.env` by the file itself, for PostgreSQL, Temporal and the secrets. */
const OF_THE_FILE = [
  ...AS_FILES,
  'POSTGRES_PASSWORD',
  'TEMPORAL_POSTGRES_PASSWORD',
  'TEMPORAL_RETENTION',
  'TEMPORAL_UI_PORT',
]

const composeText = read('docker-compose.yml')
const compose = parse(composeText, { merge: true }) as Compose
const services = Object.entries(compose.services)
const ourServices = services.filter(([, service]) => service.build !== undefined)
/** What runs all the time, and reads every setting. */
const processes = ourServices.filter(([name]) => name !== 'migrate')
const allSettings = Object.values(SETTINGS)
const allVariables: string[] = allSettings.map((setting) => setting.variable)

describe('docker-compose.yml', () => {
  describe('the processes of Posthorn', () => {
    it('consist of the migration, the API and the worker', () => {
      expect(ourServices.map(([name]) => name)).to.have.members(['migrate', 'api', 'worker'])
    })

    for (const [name, service] of ourServices) {
      it(`start ${name} with a command of the CLI`, () => {
        expect(service.command).to.have.lengthOf(1)
        expect(COMMANDS.map(({ name }) => name)).to.include(service.command?.[0])
      })

      it(`give ${name} only variables that Posthorn reads`, () => {
        expect([...allVariables, ...AS_FILES]).to.include.members(Object.keys(environmentOf(service)))
      })
    }

    for (const [name, service] of processes) {
      it(`give ${name} a value for every setting without a default`, () => {
        const required = allSettings.filter((setting) => setting.fallback === undefined)
        expect(required).to.not.be.empty
        for (const { variable } of required)
          expect(environmentOf(service)[nameIn(variable)], variable).to.be.a('string')
      })

      it(`let ${name} be tuned by every other setting`, () => {
        const expected = allVariables
          .filter((variable) => ![...NOT_NEEDED_HERE, ...OF_THE_LISTENER].includes(variable))
          .map(nameIn)
        expect(Object.keys(environmentOf(service))).to.include.members(expected)
      })
    }

    it('do not start without their secrets', () => {
      for (const [name, { environment = {} }] of ourServices)
        expect(environment['DATABASE_URL'], name).to.include('${POSTGRES_PASSWORD:?')
      expect(compose.secrets['encryption-keys']?.file).to.match(/^\$\{POSTHORN_ENCRYPTION_KEYS_FILE:\?/)
    })

    it('read their other secrets from files, the operator keys in the API only', () => {
      for (const [name, { environment = {}, secrets = [] }] of ourServices) {
        const mounted = Object.entries(environment).filter(([variable]) => AS_FILES.includes(variable))
        expect(
          mounted.map(([, file]) => file),
          name,
        ).to.have.members(secrets.map((secret) => `/run/secrets/${secret}`))
        for (const [variable, file] of mounted)
          expect(compose.secrets[file?.split('/').at(-1) ?? '']?.file, variable).to.match(
            new RegExp(`^\\$\\{${variable}:(\\?|-/dev/null\\}$)`),
          )
        expect('POSTHORN_OPERATOR_KEYS_FILE' in environment, name).to.equal(name === 'api')
      }
    })

    it('give the migration the address of the database alone', () => {
      const { environment = {}, secrets } = service('migrate')
      expect(Object.keys(environment)).to.deep.equal(['DATABASE_URL'])
      expect(secrets).to.equal(undefined)
    })

    it('reach the database with the role, the password and the database that are made for them', () => {
      const url = environmentOf(service('api'))['DATABASE_URL']?.replace(/\$\{[^}]*\}/, 'secret')
      expect(SETTINGS.databaseUrl.parse(url ?? '')).to.equal(
        'postgres://posthorn:secret@postgres:5432/posthorn',
      )
      const databases = read('temporal-config/create-databases.sql')
      expect(databases).to.include("CREATE ROLE posthorn LOGIN PASSWORD :'posthorn_password'")
      expect(databases).to.include('CREATE DATABASE posthorn OWNER posthorn')
    })

    it('answer on the port that is published and watched', () => {
      const { environment = {}, ports, healthcheck } = service('api')
      const port = environment['PORT'] ?? ''
      expect(environment['HOST']).to.equal('0.0.0.0')
      expect(ports).to.deep.equal([`127.0.0.1:\${PORT:-${SETTINGS.port.fallback ?? ''}}:${port}`])
      expect(healthcheck?.test.at(-1)).to.include(`http://127.0.0.1:${port}/readyz`)
    })

    it('watch the worker on the port of its metrics', () => {
      const { environment = {}, healthcheck } = service('worker')
      expect(environment['METRICS_HOST']).to.equal('0.0.0.0')
      const port = environment['METRICS_PORT'] ?? ''
      expect(healthcheck?.test.at(-1)).to.include(`http://127.0.0.1:${port}/readyz`)
    })

    for (const name of ['api', 'worker']) {
      it(`let ${name} finish what is under way before it is killed`, () => {
        const graceMs = SETTINGS.shutdownGraceMs.parse(SETTINGS.shutdownGraceMs.fallback ?? '')
        expect(inMs(service(name).stop_grace_period)).to.be.greaterThan(graceMs)
      })
    }

    it('wait for their tables, and the worker for its namespace', () => {
      expect(service('migrate').depends_on).to.have.property('postgres')
      expect(service('api').depends_on).to.have.property('migrate')
      expect(service('worker').depends_on).to.include.keys('migrate', 'temporal-namespace')
    })

    it('are examined without starting what they depend on, such as the migration', () => {
      const commands = read('docs/troubleshooting.md').match(/^docker compose run .* doctor$/gm)
      expect(commands).to.deep.equal(['docker compose run --rm --no-deps worker doctor'])
    })

    it('accept events while Temporal is unavailable', () => {
      expect(Object.keys(service('api').depends_on ?? {}).filter((name) => name.startsWith('temporal'))).to.be
        .empty
    })
  })

  it('waits for one-shots to succeed and for servers to be healthy', () => {
    for (const [name, { depends_on: dependencies = {} }] of services) {
      for (const [dependency, { condition }] of Object.entries(dependencies)) {
        const isOneShot = service(dependency).restart === 'no'
        const expected = isOneShot ? 'service_completed_successfully' : 'service_healthy'
        expect(condition, `${name} → ${dependency}`).to.equal(expected)
        if (!isOneShot) expect(service(dependency), dependency).to.have.property('healthcheck')
      }
    }
  })

  it('keeps the database in a volume where PostgreSQL 18 writes', () => {
    const { image, volumes = [] } = service('postgres')
    expect(image).to.match(/^postgres:18/)
    const [volume, target] = (volumes[0] ?? '').split(':')
    expect(target).to.equal('/var/lib/postgresql')
    expect(compose.volumes).to.have.property(volume ?? '')
  })

  it('pins every image', () => {
    for (const [name, { image, build }] of services) {
      if (build === undefined) expect(image, name).to.match(/^[a-z/-]+:\d+(\.\d+)*$/)
      expect(image, name).to.not.match(/:latest$/)
    }
  })

  it('takes the tables of Temporal from the version of its server', () => {
    const version = tagOf('temporal')
    expect([tagOf('temporal-schema'), tagOf('temporal-namespace')]).to.deep.equal([version, version])
  })

  it('publishes on loopback only', () => {
    const published = services.flatMap(([, { ports = [] }]) => ports)
    expect(published).to.not.be.empty
    for (const port of published) expect(port).to.match(/^127\.0\.0\.1:/)
  })

  it('keeps PostgreSQL and Temporal on a network without a way out', () => {
    expect(compose.networks['backend']?.internal).to.equal(true)
    for (const name of ['postgres', 'temporal']) expect(service(name).networks).to.deep.equal(['backend'])
  })

  it('mounts only files of this repository, read-only', () => {
    const mounts = services
      .flatMap(([, { volumes = [] }]) => volumes)
      .filter((volume) => volume.startsWith('.'))
    expect(mounts).to.not.be.empty
    for (const mount of mounts) {
      const [source = '', , mode] = mount.split(':')
      expect(existsSync(`${ROOT}${source}`), source).to.equal(true)
      expect(mode, source).to.equal('ro')
    }
  })

  it('runs only scripts that are mounted', () => {
    for (const name of ['temporal-schema', 'temporal-namespace']) {
      const { entrypoint = [], volumes = [] } = service(name)
      expect(volumes.map((volume) => volume.split(':')[1])).to.include(entrypoint.at(-1))
    }
  })

  it('reads nothing from .env but the settings of Posthorn and a few of its own', () => {
    const interpolated = [...composeText.matchAll(/\$\{([A-Z_]+)/g)].map(([, variable]) => variable)
    expect([...allVariables, ...OF_THE_FILE]).to.include.members(interpolated)
    expect(interpolated).to.include.members(OF_THE_FILE)
  })
})

describe('temporal-config', () => {
  it('holds the dynamic configuration that the server is given', () => {
    const { environment = {}, volumes = [] } = service('temporal')
    const target = environment['DYNAMIC_CONFIG_FILE_PATH'] ?? ''
    expect(volumes).to.deep.equal([`./temporal-config/dynamicconfig.yaml:${target}:ro`])
  })

  it('switches eager activities and fairness on', () => {
    expect(parse(read('temporal-config/dynamicconfig.yaml'))).to.deep.equal({
      'system.enableActivityEagerExecution': [{ value: true }],
      'matching.enableFairness': [{ value: true }],
    })
  })

  it('registers the search attributes of the deliveries, as keywords', () => {
    const script = read('temporal-config/create-namespace.sh')
    const registered = [...script.matchAll(/--name (\w+) --type (\w+)/g)].map(([, name, type]) => [
      name,
      type,
    ])
    expect(registered).to.have.deep.members(SEARCH_ATTRIBUTE_NAMES.map((name) => [name, 'Keyword']))
  })

  it('gives Temporal the databases that its role owns', () => {
    const { environment = {} } = service('temporal')
    const databases = read('temporal-config/create-databases.sql')
    const schema = read('temporal-config/create-schema.sh')
    for (const name of [environment['DBNAME'], environment['VISIBILITY_DBNAME']]) {
      expect(databases).to.include(`CREATE DATABASE ${name ?? ''} OWNER temporal;`)
      expect(schema).to.match(new RegExp(`^create_schema ${name ?? ''} `, 'm'))
    }
  })

  for (const script of ['create-schema.sh', 'create-namespace.sh']) {
    it(`has in ${script} a POSIX script that stops at the first failure`, () => {
      const path = `temporal-config/${script}`
      const { status, stderr } = spawnSync('sh', ['-n', `${ROOT}${path}`], { encoding: 'utf8' })
      expect(status, stderr).to.equal(0)
      expect(read(path)).to.match(/^#!\/bin\/sh\n(#.*\n)*set -eu\n/)
    })
  }
})

describe('Dockerfile', () => {
  const dockerfile = read('Dockerfile')

  it('starts the program that package.json names, with a command of the CLI', () => {
    const { bin } = JSON.parse(read('package.json')) as { bin: { posthorn: string } }
    expect(dockerfile).to.include(`ENTRYPOINT ["node", "${bin.posthorn}"]`)
    const command = /^CMD \["(\w+)"\]$/m.exec(dockerfile)?.[1]
    expect(COMMANDS.map(({ name }) => name)).to.include(command)
  })

  it('copies only what .dockerignore lets through', () => {
    const allowed = read('.dockerignore').match(/(?<=^!).+$/gm) ?? []
    const copied = [...dockerfile.matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, from = '']) =>
      from.split(' '),
    )
    expect(copied).to.not.be.empty
    for (const file of copied)
      expect(
        allowed.some((one) => `${file}/`.startsWith(`${one}/`)),
        file,
      ).to.equal(true)
  })

  it('runs without root, on glibc', () => {
    expect(dockerfile).to.match(/^USER node$/m)
    expect(dockerfile).to.match(/^ARG NODE_IMAGE=node:24-bookworm-slim$/m)
  })
})

function read(path: string): string {
  return readFileSync(`${ROOT}${path}`, 'utf8')
}

function service(name: string): Service {
  const found = compose.services[name]
  if (found === undefined) throw new Error(`docker-compose.yml has no service ${name}`)
  return found
}

function environmentOf({ environment = {} }: Service): Record<string, string | null> {
  return environment
}

/** Returns the variable that a setting is passed by. */
function nameIn(variable: string): string {
  return AS_FILES.includes(`${variable}_FILE`) ? `${variable}_FILE` : variable
}

function tagOf(name: string): string | undefined {
  return service(name).image.split(':')[1]
}

function inMs(duration = ''): number {
  const seconds = /^(\d+)s$/.exec(duration)?.[1]
  if (seconds === undefined) throw new Error(`${duration} is not a number of seconds`)
  return Number(seconds) * 1000
}
