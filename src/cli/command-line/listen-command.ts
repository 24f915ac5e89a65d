import { DEFAULT_API, FORWARD_TIMEOUT_MS } from '../listen/listen-defaults.ts'
import type { Command } from './command.ts'

export const LISTEN_COMMAND: Command = {
  name: 'listen',
  summary: 'forward events to this machine',
  details: [
    'Follows the event stream of an organisation and sends each event to a receiver, as webhooks send it.',
    'Needs no database. Give --forward-to, --print or both.',
    `A POST that is not answered with 2xx within ${FORWARD_TIMEOUT_MS / 1_000} seconds is shown, and not retried.`,
    'After a break it resumes without a gap or a repeat. Ctrl-C ends it.',
  ],
  options: [
    {
      name: 'events',
      value: 'KEYS',
      meaning: 'event keys with commas between them; default: all that the key may see',
    },
    { name: 'forward-to', value: 'URL', meaning: 'where each event is POSTed' },
    { name: 'print', meaning: 'print the body of each event; without --forward-to nothing is sent' },
    {
      name: 'secret',
      value: 'SECRET',
      meaning: 'signing secret; default: a new one, which is printed at the start',
    },
    { name: 'api', value: 'URL', meaning: `address of Posthorn; default: POSTHORN_URL, or ${DEFAULT_API}` },
    {
      name: 'key',
      value: 'KEY',
      meaning: 'API key; default: POSTHORN_KEY, which other users of this machine do not see',
    },
    { name: 'org', value: 'ORG', meaning: 'organisation; default: POSTHORN_ORG, or that of the key' },
  ],
  examples: [
    'listen --forward-to http://localhost:4000/hook',
    'listen --print --events invoice:paid,customer:created --api https://posthorn.example.com',
  ],
  load: async () => (await import('../listen/listen-arguments.ts')).runListen,
}
