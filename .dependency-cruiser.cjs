// The rules of the house (docs/architecture.md): who may import values from whom.
// Type-only imports are free; each folder lists all it may reach, everything else is refused.
const houses = {
  domain: { own: '^src/domain/', may: ['^src/domain/'], npm: false },
  catalogue: {
    own: '^src/catalogue/',
    may: ['^src/catalogue/', '^src/domain/', '^src/ajv-errors'],
    npm: true,
  },
  entities: { own: '^src/db/entities/', may: ['^src/db/entities/', '^src/domain/'], npm: true },
  queries: { own: '^src/db/queries/', may: ['^src/db/', '^src/domain/', '^src/errors'], npm: true },
  outbound: {
    own: '^src/outbound/',
    may: ['^src/outbound/', '^src/domain/', '^src/(errors|logger|metrics)'],
    npm: true,
  },
  metrics: {
    own: '^src/metrics/',
    may: ['^src/metrics/', '^src/domain/', '^src/db/connection-errors'],
    npm: true,
  },
  events: {
    own: '^src/events/',
    may: ['^src/events/', '^src/db/', '^src/domain/', '^src/catalogue/', '^src/(errors|logger|ids)'],
    npm: true,
  },
  deliveries: {
    own: '^src/deliveries/',
    may: [
      '^src/deliveries/',
      '^src/outbound/',
      '^src/incidents/',
      '^src/db/',
      '^src/domain/',
      '^src/temporal/',
      '^src/(errors|logger|metrics|ids|secret-box|shutdown)',
    ],
    npm: true,
  },
  incidents: {
    own: '^src/incidents/',
    may: ['^src/incidents/', '^src/db/', '^src/domain/', '^src/(errors|logger|ids)'],
    npm: true,
  },
  retention: {
    own: '^src/retention/',
    may: ['^src/retention/', '^src/db/', '^src/domain/', '^src/logger'],
    npm: true,
  },
  notifications: {
    own: '^src/notifications/',
    may: [
      '^src/notifications/',
      '^src/outbound/',
      '^src/db/',
      '^src/domain/',
      '^src/(errors|logger|ids|shutdown)',
    ],
    npm: true,
  },
  temporal: {
    own: '^src/temporal/',
    may: ['^src/temporal/', '^src/domain/', '^src/(errors|logger|free-port)'],
    npm: true,
  },
  activities: {
    own: '^activities/',
    may: [
      '^activities/',
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
      '^src/events/',
      '^src/deliveries/',
      '^src/incidents/',
      '^src/outbound/url-rules',
      '^src/db/',
      '^src/catalogue/',
      '^src/temporal/',
      '^src/web/',
      '^src/domain/',
      '^src/(errors|logger|metrics|ids|ajv-errors|secret-box)',
      '^package.json$',
    ],
    npm: true,
  },
}

const notFromHere = Object.entries(houses).map(([name, { own, may, npm }]) => ({
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
      comment: 'What runs in browsers is served as it is: it reaches nothing but itself and lit-html.',
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
