import { DEFAULT_API } from '../listen/listen-defaults.ts'
import { LISTEN_COMMAND } from './listen-command.ts'
import type { Command, CommandGroup, Option } from './command.ts'

const organisation: Option = {
  name: 'organisation',
  value: 'ORG',
  meaning: 'id of the organisation',
  isRequired: true,
}
const member: Option = { name: 'member', value: 'MEMBER', meaning: 'id of the member whose key it is' }
const name: Option = { name: 'name', value: 'NAME', meaning: 'name of the key, which a member has once' }

const loadApiKey: Command['load'] = async () => (await import('../api-key-arguments.ts')).runApiKey

const API_KEY_COMMANDS: readonly Command[] = [
  {
    name: 'api-key create',
    summary: 'create an API key of a member',
    details: [
      'Needs DATABASE_URL. Prints the new key to standard output, this once, and all else to standard error.',
      'Without --expires and --expires-in-days the key does not expire.',
    ],
    options: [
      organisation,
      { ...member, isRequired: true },
      { ...name, isRequired: true },
      { name: 'expires', value: 'TIME', meaning: 'when it expires, such as 2027-01-01T00:00:00Z' },
      { name: 'expires-in-days', value: 'N', meaning: 'in how many days it expires' },
    ],
    examples: [
      'api-key create --organisation org_camping --member mem_an --name billing',
      'api-key create --organisation org_camping --member mem_an --name ci --expires-in-days 365',
    ],
    load: loadApiKey,
  },
  {
    name: 'api-key list',
    summary: 'list the API keys of an organisation',
    details: ['Needs DATABASE_URL. Shows every key, the revoked ones too, but never its value.'],
    options: [
      organisation,
      { ...member, meaning: 'only the keys of this member' },
      { name: 'json', meaning: 'print one JSON document' },
    ],
    examples: ['api-key list --organisation org_camping'],
    load: loadApiKey,
  },
  {
    name: 'api-key revoke',
    summary: 'revoke an API key',
    details: [
      'Needs DATABASE_URL, and either --id or --member and --name.',
      'Counts from the next request on. Revoking twice is harmless.',
    ],
    options: [
      organisation,
      { name: 'id', value: 'ID', meaning: 'id of the key, as posthorn api-key list shows it' },
      member,
      name,
    ],
    examples: [
      'api-key revoke --organisation org_camping --member mem_an --name billing',
      'api-key revoke --organisation org_camping --id 01976f3e-8c1d-7a52-9b40-6d1f2e3a4b5c',
    ],
    load: loadApiKey,
  },
]

/** Every command of `posthorn`, in the order of its help. Nothing heavy is imported here: help is printed at once. */
export const COMMANDS: readonly (Command | CommandGroup)[] = [
  {
    name: 'serve',
    summary: 'run the API and a worker in one process',
    details: ['Runs until SIGTERM or SIGINT. Needs all required settings.'],
    examples: ['serve'],
    load: async () => (await import('../serve.ts')).runService({ api: true, worker: true }),
  },
  {
    name: 'api',
    summary: 'run the API without a worker; it never POSTs to receivers',
    details: ['Runs until SIGTERM or SIGINT. Needs all required settings.'],
    examples: ['api'],
    load: async () => (await import('../serve.ts')).runService({ api: true, worker: false }),
  },
  {
    name: 'worker',
    summary: 'run a worker without the API',
    details: ['Runs until SIGTERM or SIGINT. Needs all required settings.'],
    examples: ['worker'],
    load: async () => (await import('../serve.ts')).runService({ api: false, worker: true }),
  },
  {
    name: 'relay',
    summary: "publish the events of an outbox in your platform's database",
    details: [
      'Needs RELAY_DATABASE_URL and RELAY_OPERATOR_KEY, and no database of Posthorn. Runs until SIGTERM or SIGINT.',
      'Several processes share the organisations. docs/integrate.md shows it from the INSERT to the webhook.',
    ],
    options: [
      { name: 'api', value: 'URL', meaning: `address of Posthorn; default: POSTHORN_URL, or ${DEFAULT_API}` },
      { name: 'print-sql', meaning: 'print the SQL that makes the outbox, and end' },
    ],
    examples: ['relay --api https://posthorn.example.com', 'relay --print-sql > outbox.sql'],
    load: async () => (await import('../serve.ts')).runRelay,
  },
  {
    name: 'migrate',
    summary: 'bring the database up to date',
    details: ['Needs DATABASE_URL. Repeating it is harmless.'],
    examples: ['migrate'],
    load: async () => (await import('../migrate.ts')).runMigrate,
  },
  {
    name: 'seed',
    summary: 'bring in organisations, members and API keys',
    details: [
      'Applies a JSON file as a whole or not at all. What is not in it stays; of what is, left-out fields get their default.',
      'Needs DATABASE_URL. Generated API keys are printed, once. docs/production.md has an example of the file.',
    ],
    operand: 'FILE',
    examples: ['seed organisations.json'],
    load: async () => (await import('../seed.ts')).runSeed,
  },
  { name: 'api-key', summary: 'create, list and revoke API keys', commands: API_KEY_COMMANDS },
  {
    name: 're-encrypt',
    summary: 'put every signing secret under the newest encryption key',
    details: [
      'Needs DATABASE_URL and POSTHORN_ENCRYPTION_KEYS. Repeating it is harmless.',
      'Exit code 1 as long as a secret is left under another key.',
    ],
    examples: ['re-encrypt'],
    load: async () => (await import('../re-encrypt.ts')).runReEncrypt,
  },
  {
    name: 'doctor',
    summary: 'find problems of an installation, with cures',
    details: [
      'Examines the settings, the database, Temporal, the keys, the proxy, the outbound policy, mail, push, the',
      'deliveries, incidents, retry jobs, erasures and the outbox of the relay, with the settings of the environment.',
      'Prints one line for each finding, with its cure.',
      'Changes nothing and sends nothing.',
      'Exit code: 0 without an error, 1 with one, 2 when it is called wrongly.',
    ],
    options: [{ name: 'json', meaning: 'print one JSON document' }],
    examples: ['doctor', 'doctor --json'],
    load: async () => (await import('../doctor/diagnose.ts')).runDoctor,
  },
  {
    name: 'catalogue',
    summary: 'check a catalogue of event keys, or print the built-in one',
    commands: [
      {
        name: 'catalogue check',
        summary: 'name every problem of a catalogue, and schemas that cannot be checked fast',
        details: [
          'Exit code: 0 without a problem, 1 where webhooks subscribe to missing keys, 2 for a bad file.',
        ],
        operand: 'FILE',
        options: [
          {
            name: 'database',
            meaning:
              'also name the event keys that webhooks of DATABASE_URL subscribe to and that FILE lacks',
          },
        ],
        examples: ['catalogue check catalogue.json', 'catalogue check catalogue.json --database'],
        load: async () => (await import('../catalogue.ts')).runCatalogueCheck,
      },
      {
        name: 'catalogue print',
        summary: 'print the built-in catalogue, to begin with',
        examples: ['catalogue print > catalogue.json'],
        load: async () => (await import('../catalogue.ts')).runCataloguePrint,
      },
    ],
  },
  LISTEN_COMMAND,
  {
    name: 'openapi',
    summary: 'print the OpenAPI document',
    details: ['It documents the catalogue that POSTHORN_CATALOGUE names, or the built-in one.'],
    examples: ['openapi > openapi.json'],
    load: async () => (await import('../catalogue.ts')).runOpenApi,
  },
]
