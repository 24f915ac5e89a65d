import type { Command, Option } from './command.ts'

const organisation: Option = {
  name: 'organisation',
  value: 'ORG',
  meaning: 'id of the organisation',
  isRequired: true,
}
const member: Option = { name: 'member', value: 'MEMBER', meaning: 'id of the member whose key it is' }
const name: Option = { name: 'name', value: 'NAME', meaning: 'name of the key, which a member has once' }

const load: Command['load'] = async () => (await import('../api-key-arguments.ts')).runApiKey

export const API_KEY_COMMANDS: readonly Command[] = [
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
    load,
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
    load,
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
    load,
  },
]
