/** The commands of `posthorn`, and what each does. */
export const COMMANDS = {
  serve: 'run the API and a worker in one process',
  api: 'run the API without a worker',
  worker: 'run a worker without the API',
  migrate: 'bring the database up to date',
  seed: 'bring in organisations, members and API keys: posthorn seed FILE',
  'api-key': 'create, list and revoke API keys: posthorn api-key --help',
  're-encrypt': 'put every signing secret under the newest encryption key',
  doctor: 'find problems of an installation, with cures: posthorn doctor --help',
  catalogue: 'check a catalogue of event keys, or print the built-in one: posthorn catalogue --help',
  listen: 'forward events to this machine: posthorn listen --help',
  openapi: 'print the OpenAPI document',
} as const

export type CommandName = keyof typeof COMMANDS

export const COMMAND_NAMES = Object.keys(COMMANDS) as readonly CommandName[]
