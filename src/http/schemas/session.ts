import { Type } from 'typebox'
import { TimestampSchema } from './common.ts'

export const SessionSchema = Type.Object({
  organisation: Type.Object({
    id: Type.String(),
    name: Type.String(),
    timeZone: Type.String({ description: 'IANA name, such as Europe/Brussels' }),
  }),
  member: Type.Object({
    id: Type.String(),
    name: Type.String(),
    fullAccess: Type.Boolean(),
    permissions: Type.Array(Type.String()),
  }),
  expiresAt: Type.Union([TimestampSchema, Type.Null()], {
    description: 'When the session ends at the latest; null with an API key',
  }),
  retryWaitsMs: Type.Array(Type.Integer(), {
    description:
      'The retry schedule: wait before attempts 2 and following, each since the end of the one before',
  }),
  temporalUi: Type.Union([Type.Object({ url: Type.String(), namespace: Type.String() }), Type.Null()], {
    description:
      'Where operators look at workflows; null where it is not configured, and for members without full access',
  }),
})
