import { Type } from 'typebox'
import { UUID_PATTERN } from '../../ids.ts'
import { POSITION_PATTERN } from '../../stream/positions.ts'
import { timestamp } from './common.ts'
import { EXAMPLE_IDS } from './example-ids.ts'

/** Query of the event stream. */
export const EventStreamQuerySchema = Type.Object(
  {
    events: Type.Optional(
      Type.String({
        title: 'EventKeys',
        maxLength: 8_000,
        description:
          'Event keys, separated by commas; `*` alone for all, which needs full access. Without it: every key that the member may see',
        examples: ['invoice:paid,customer:created'],
      }),
    ),
    lastEventId: Type.Optional(
      Type.String({
        pattern: `${UUID_PATTERN}|^${POSITION_PATTERN}$`,
        maxLength: 200,
        description:
          'The last `id` that was received, of an event or of a position; the stream goes on after it. The header counts before it',
        examples: [EXAMPLE_IDS.event],
      }),
    ),
    ticket: Type.Optional(
      Type.String({ maxLength: 100, description: 'A ticket in the place of the API key, for one request' }),
    ),
  },
  { additionalProperties: false },
)

export const StreamTicketSchema = Type.Object(
  {
    ticket: Type.String({
      description: 'For the parameter `ticket` of the stream, once',
      examples: ['kT9w1qgJX0q2b7V5n8R3mZ4cYdLhUeAfSgPjQiOkWtE'],
    }),
    expiresAt: timestamp('2026-05-04T09:02:41.204Z'),
  },
  { title: 'StreamTicket' },
)
