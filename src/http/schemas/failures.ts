import { Type } from 'typebox'
import { FAILURE_TEXTS } from '../../domain/failure-texts.ts'
import { timestamp, orNull } from './common.ts'
import { FAILURE_CODE } from './delivery.ts'

const FailureCauseSchema = Type.Object(
  {
    failureCode: FAILURE_CODE,
    statusCode: orNull(Type.Integer(), { description: 'What the endpoint answered', examples: [503] }),
    error: orNull(Type.String(), {
      description: "What went wrong, in Posthorn's words",
      examples: ['The endpoint answered 503 Service Unavailable.'],
    }),
    cure: Type.String({
      description: 'What to do about it, the same text for each failure code',
      examples: [FAILURE_TEXTS.http_status.cure],
    }),
    failedAttempts: Type.Integer({ examples: [38] }),
    deliveries: Type.Integer({ description: 'Deliveries that these attempts were of', examples: [12] }),
    firstAt: timestamp('2026-05-04T08:02:12.301Z', 'When the first of these attempts began'),
    lastAt: timestamp('2026-05-04T09:02:12.301Z', 'When the last of these attempts began'),
  },
  { title: 'FailureCause', description: 'Attempts that failed in the same way' },
)

export const FailuresSchema = Type.Object(
  {
    failedAttempts: Type.Integer({ description: 'Test events do not count', examples: [38] }),
    deliveries: Type.Integer({ description: 'Deliveries that these attempts were of', examples: [12] }),
    isCapped: Type.Boolean({
      description: 'There were more failed attempts: the latest 1,000 are counted',
      examples: [false],
    }),
    causes: Type.Array(FailureCauseSchema, { description: 'The most frequent first, 20 at most' }),
  },
  { title: 'Failures', description: 'Failed attempts, grouped by their cause' },
)
