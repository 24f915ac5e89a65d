// Who may import values from whom (docs/architecture.md, Folders).
// Type-only imports are free, except from src/http; each folder lists all it may import, everything else is refused.
const folders = {
  domain: { own: '^src/domain/', may: ['^src/domain/'], npm: false },
  catalogue: {
    own: '^src/catalogue/',
    may: ['^src/catalogue/', '^src/domain/', '^src/json-schema/', '^src/ajv-errors'],
    npm: true,
  },
  'json-schema': { own: '^src/json-schema/', may: ['^src/json-schema/'], npm: true },
  entities: { own: '^src/db/entities/', may: ['^src/db/entities/', '^src/domain/'], npm: true },
  queries: {
    own: '^src/db/queries/',
    may: ['^src/db/', '^src/domain/', '^src/(credentials|errors|ids)'],
    npm: true,
  },
  config: {
    own: '^src/config/',
    may: ['^src/config/', '^src/domain/', '^src/outbound/', '^src/db/session-limits'],
    npm: true,
  },
  outbound: {
    own: '^src/outbound/',
    may: ['^src/outbound/', '^src/domain/', '^src/(errors|timers)', '^package.json$'],
    npm: true,
  },
  observability: {
    own: '^src/observability/',
    may: ['^src/observability/', '^src/domain/', '^src/db/connection-errors'],
    npm: true,
  },
  accounts: {
    own: '^src/accounts/',
    may: ['^src/accounts/', '^src/db/', '^src/domain/', '^src/(credentials|errors|ids|ttl-cache)'],
    npm: true,
  },
  events: {
    own: '^src/events/',
    may: [
      '^src/events/',
      '^src/deliveries/protocol/',
      '^src/db/',
      '^src/domain/',
      '^src/catalogue/',
      '^src/(errors|ids|ttl-cache)',
    ],
    npm: true,
  },
  stream: {
    own: '^src/stream/',
    may: [
      '^src/stream/',
      '^src/catalogue/',
      '^src/db/',
      '^src/domain/',
      '^src/(credentials|errors|ids|secret-box)',
    ],
    npm: true,
  },
  webhooks: {
    own: '^src/webhooks/',
    may: [
      '^src/webhooks/',
      '^src/deliveries/protocol/',
      '^src/accounts/',
      '^src/incidents/',
      '^src/outbound/url-rules',
      '^src/catalogue/',
      '^src/db/',
      '^src/domain/',
      '^src/(errors|ids|secret-box)',
    ],
    npm: true,
  },
  deliveries: {
    own: '^src/deliveries/',
    may: [
      '^src/deliveries/',
      '^src/events/',
      '^src/outbound/',
      '^src/incidents/',
      '^src/db/',
      '^src/domain/',
      '^src/temporal/',
      '^src/(errors|ids|round-robin-queue|secret-box|shutdown|timers)',
    ],
    npm: true,
  },
  protocol: {
    own: '^src/deliveries/protocol/',
    may: ['^src/deliveries/(protocol/|lease-times)', '^src/db/', '^src/domain/'],
    npm: true,
  },
  incidents: {
    own: '^src/incidents/',
    may: ['^src/incidents/', '^src/db/', '^src/domain/', '^src/(errors|ids)'],
    npm: true,
  },
  retention: { own: '^src/retention/', may: ['^src/retention/', '^src/db/', '^src/domain/'], npm: true },
  notifications: {
    own: '^src/notifications/',
    may: ['^src/notifications/', '^src/outbound/', '^src/db/', '^src/domain/', '^src/(errors|ids|shutdown)'],
    npm: true,
  },
  temporal: {
    own: '^src/temporal/',
    may: ['^src/temporal/', '^src/domain/', '^src/(errors|free-port)'],
    npm: true,
  },
  activities: {
    own: '^activities/',
    may: [
      '^activities/',
      '^src/accounts/',
      '^src/deliveries/',
      '^src/retention/',
      '^src/incidents/',
      '^src/notifications/',
      '^src/db/',
      '^src/temporal/',
      '^src/domain/',
      '^src/shutdown',
    ],
    npm: true,
  },
  workflows: { own: '^workflows/', may: ['^workflows/', '^src/domain/'], npm: true },
  web: { own: '^src/web/[^/]+$', may: ['^src/web/[^/]+$', '^src/errors'], npm: true },
  http: {
    own: '^src/http/',
    may: [
      '^src/http/',
      '^src/accounts/',
      '^src/webhooks/',
      '^src/events/publish-event',
      '^src/stream/(positions|tickets)',
      '^src/deliveries/(commands|retry-jobs)/',
      '^src/notifications/push-subscription',
      '^src/outbound/host-names',
      '^src/db/(queries/|connection-errors)',
      '^src/catalogue/',
      '^src/web/[^/]+$',
      '^src/domain/',
      '^src/json-schema/',
      '^src/(ajv-errors|credentials|errors|ids|round-robin-queue)',
      '^package.json$',
    ],
    npm: true,
  },
}

const notFromHere = Object.entries(folders).map(([name, { own, may, npm }]) => ({
  name: `${name}-imports`,
  severity: 'error',
  comment: `${own} may import values only from: ${may.join(', ')}`,
  from: { path: own },
  to: {
    pathNot: npm ? [...may, 'node_modules'] : may,
    dependencyTypesNot: npm ? ['type-only', 'core', 'npm', 'npm-dev'] : ['type-only'],
  },
}))

module.exports = {
  forbidden: [
    ...notFromHere,
    {
      name: 'no-cycles',
      severity: 'error',
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
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
      comment: 'Pages are served as they are: they import nothing but each other and lit-html.',
      from: { path: '^src/web/pages/' },
      to: {
        pathNot: ['^src/web/pages/', '^/assets/lit-html/', 'lit-html'],
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
      from: { pathNot: ['^src/(http|cli|dev)/', '^src/web/pages/app/types\\.d\\.ts$'] },
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
      from: { path: '^src/cli/(posthorn\\.ts$|command-line/)' },
      to: {
        dynamic: false,
        pathNot: [
          '^src/cli/command-line/',
          '^src/cli/(describe-error|visible-text|listen/listen-defaults)',
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
