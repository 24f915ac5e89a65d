import { Type } from 'typebox'
import { timestamp, orNull } from './common.ts'

const SessionOrganisationSchema = Type.Object(
  {
    id: Type.String({ examples: ['org_camping'] }),
    name: Type.String({ examples: ['Camping Zon'] }),
    timeZone: Type.String({
      description: 'IANA name, such as Europe/Brussels',
      examples: ['Europe/Brussels'],
    }),
  },
  { title: 'SessionOrganisation' },
)

const SessionMemberSchema = Type.Object(
  {
    id: Type.String({ examples: ['mem_an'] }),
    name: Type.String({ examples: ['An'] }),
    fullAccess: Type.Boolean({ examples: [false] }),
    permissions: Type.Array(Type.String(), { examples: [['webhook:read', 'invoice:read']] }),
  },
  { title: 'SessionMember' },
)

export const TemporalUiSchema = Type.Object(
  {
    url: Type.String({ examples: ['https://temporal.example.com'] }),
    namespace: Type.String({ examples: ['default'] }),
  },
  { title: 'TemporalUi' },
)

export const SessionSchema = Type.Object(
  {
    organisation: SessionOrganisationSchema,
    member: SessionMemberSchema,
    expiresAt: orNull(timestamp('2026-05-04T20:00:00.000Z'), {
      description: 'When the session ends at the latest; null with an API key',
    }),
    retryWaitsMs: Type.Array(Type.Integer(), {
      description:
        'The retry schedule: wait before attempts 2 and following, each since the end of the one before',
      examples: [[1_000, 2_000, 4_000, 8_000, 300_000, 1_800_000, 7_200_000, 21_600_000, 86_400_000]],
    }),
    temporalUi: orNull(TemporalUiSchema, {
      description:
        'Where operators look at workflows; null where it is not configured, and for members without full access',
      examples: [null],
    }),
  },
  { title: 'Session' },
)
