// Who may import from whom (docs/architecture.md, Folders), types included: arrows go down. Each folder lists all that it
// may import beside itself; everything else is refused.

/** Files without a folder, which know of nothing above them. */
const shared =
  '^src/(credentials|free-port|ids|poll-loop|problem-error|round-robin-queue|secret-box|shutdown|tally|timers)\\.ts$'
const database = '^src/db/'
const domain = '^src/domain/'
const observed = '^src/observability/'

const folders = {
  '^src/domain/': [],
  [shared]: [domain, observed, '^src/db/connection/connection-errors'],
  '^src/json-schema/': [domain, shared],
  '^src/observability/': [domain],
  '^src/outbound/': [domain, shared, '^package.json$'],
  '^src/db/connection/': [shared, observed, '^src/db/(entities|migrations)/'],
  '^src/db/entities/': [domain],
  '^src/db/migrations/': [],
  '^src/db/': [domain, shared, observed],
  '^src/catalogue/': [domain, shared, '^src/json-schema/'],
  '^src/config/': [domain, shared, observed, '^src/outbound/', '^src/db/connection/session-limits'],
  '^src/temporal/': [domain, shared, observed, '^activities/index'],
  '^src/accounts/': [database, domain, shared, observed, '^src/temporal/'],
  '^src/stream/': [database, domain, shared, observed, '^src/(accounts|catalogue)/'],
  '^src/retention/': [database, domain, observed],
  '^src/deliveries/protocol/': [database, domain],
  // Both take the lock of a webhook, whose folder is above them.
  '^src/incidents/': [
    database,
    domain,
    shared,
    observed,
    '^src/outbound/',
    '^src/temporal/',
    '^src/webhooks/webhook-locks',
  ],
  '^src/deliveries/': [
    database,
    domain,
    shared,
    observed,
    '^src/catalogue/',
    '^src/outbound/',
    '^src/incidents/',
    '^src/temporal/',
    '^src/webhooks/webhook-locks',
  ],
  '^src/webhooks/': [
    database,
    domain,
    shared,
    observed,
    '^src/accounts/',
    '^src/catalogue/',
    '^src/outbound/url-rules',
    '^src/deliveries/protocol/',
    '^src/incidents/',
  ],
  '^src/relay/': [domain, shared, observed, '^src/db/connection/', '^src/outbound/api-answer'],
  '^activities/': [
    database,
    domain,
    shared,
    '^src/(accounts|deliveries|incidents|retention)/',
    '^src/webhooks/webhook-locks',
  ],
  '^workflows/': [domain, '^activities/index'],
  '^src/http/': [
    domain,
    shared,
    observed,
    '^src/db/(queries/|connection/(connection-errors|database-queues))',
    '^src/(accounts|catalogue|incidents|json-schema|stream|webhooks)/',
    '^src/deliveries/(publish/|retry/|dispatch/dispatcher|protocol/commit-events|recovery/sweeper)',
    // What the handlers call, by type: the process gives it to them.
    '^src/temporal/(workflows|temporal-service)',
    '^src/outbound/(host-names|signed-headers|url-rules)',
    '^package.json$',
  ],
  '^src/process/': [
    domain,
    shared,
    observed,
    database,
    '^src/(accounts|catalogue|config|deliveries|http|incidents|outbound|relay|stream|temporal|webhooks)/',
    '^activities/index',
    '^package.json$',
  ],
}

const names = Object.keys(folders)

/** Folders with rules of their own inside a folder. */
const within = (own) => names.filter((name) => name !== own && name.startsWith(own))

const notFromHere = Object.entries(folders).map(([own, may]) => ({
  name: `${own.replace(/^\^(src\/)?|\W+$/g, '')}-imports`,
  severity: 'error',
  comment: `${own} may import only from itself and: ${may.join(', ')}`,
  from: { path: own, pathNot: within(own) },
  to: { pathNot: [own, ...may, 'node_modules'], dependencyTypesNot: ['core', 'npm', 'npm-dev'] },
}))

module.exports = {
  forbidden: [
    ...notFromHere,
    {
      name: 'no-cycles',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    {
      name: 'domain-without-npm',
      severity: 'error',
      comment: 'It runs inside workflows.',
      from: { path: '^src/domain/' },
      to: { dependencyTypes: ['core', 'npm', 'npm-dev'], dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'workflows-npm',
      severity: 'error',
      comment: 'A workflow may use @temporalio/workflow and nothing else from npm or node.',
      from: { path: '^workflows/' },
      to: {
        dependencyTypes: ['core', 'npm', 'npm-dev'],
        dependencyTypesNot: ['type-only'],
        pathNot: 'node_modules/@temporalio/(workflow|common)',
      },
    },
    {
      name: 'pages-alone',
      severity: 'error',
      comment: 'Pages import nothing but each other and lit-html.',
      from: { path: '^src/web/pages/' },
      to: {
        pathNot: ['^src/web/pages/', 'lit-html'],
        dependencyTypesNot: ['type-only'],
      },
    },
    {
      name: 'dev-only-from-dev',
      severity: 'error',
      comment: 'Embedded servers and demo parts are loaded by the development commands only.',
      from: { pathNot: ['^src/dev/', '^src/cli/(dev|build)\\.ts$'] },
      to: { path: '^src/dev/' },
    },
    {
      name: 'http-from-cli-only',
      severity: 'error',
      comment:
        'src/http translates and nothing depends on it, also not by type; pages may use the types of answers.',
      from: { pathNot: ['^src/(http|process|cli|dev)/', '^src/web/pages/app/types\\.d\\.ts$'] },
      to: { path: '^src/http/' },
    },
    {
      name: 'http-without-orm',
      severity: 'error',
      comment: 'src/http calls queries and domain folders; it uses TypeORM by type only.',
      from: { path: '^src/http/' },
      to: { path: 'node_modules/typeorm', dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'command-line-is-light',
      severity: 'error',
      comment:
        'Help and a mistyped command are answered before anything heavy is loaded: each command imports its own.',
      from: { path: '^src/cli/(posthorn(-listen)?\\.ts$|command-line/)' },
      to: {
        dynamic: false,
        pathNot: [
          '^src/cli/command-line/',
          '^src/cli/listen/listen-defaults',
          '^src/process/visible-text',
          '^package.json$',
        ],
        dependencyTypesNot: ['type-only', 'core'],
      },
    },
    {
      name: 'cli-is-the-root',
      severity: 'error',
      from: { pathNot: ['^src/cli/', '^src/dev/'] },
      to: { path: '^src/cli/', dependencyTypesNot: ['type-only'] },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsConfig: { fileName: 'tsconfig.json' },
    tsPreCompilationDeps: true,
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'node', 'default'] },
  },
}
