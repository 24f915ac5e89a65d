import { Type } from 'typebox'
import { TimestampSchema } from './common.ts'

const UUID = '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$'

/** Query of the event stream. */
export const EventStreamQuerySchema = Type.Object(
  {
    events: Type.Optional(
      Type.String({
        maxLength: 8_000,
        description:
          'Event keys, separated by commas; `*` alone for all, which needs full access. Without it: every key that the member may see',
      }),
    ),
    lastEventId: Type.Optional(
      Type.String({
        pattern: UUID,
        description:
          'Id of the last event that was received; the stream goes on after it. The header counts before it',
      }),
    ),
    ticket: Type.Optional(
      Type.String({ maxLength: 100, description: 'A ticket in the place of the API key, for one request' }),
    ),
  },
  { additionalProperties: false },
)

export const StreamTicketSchema = Type.Object({
  ticket: Type.String({ description: 'For the parameter `ticket` of the stream, once' }),
  expiresAt: TimestampSchema,
})
