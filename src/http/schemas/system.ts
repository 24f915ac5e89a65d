import { Type } from 'typebox'
import { openObject } from './common.ts'

export const HealthSchema = Type.Object({ status: Type.Literal('ok') }, { title: 'Health' })

export const ReadinessSchema = Type.Object(
  {
    database: Type.Enum(['up', 'down']),
    engine: Type.Enum(['up', 'down']),
    sweep: Type.Optional(
      Type.Literal('stalled', {
        description:
          'Only there when the recovery of deliveries has not come to the end of a pass for 30 seconds',
      }),
    ),
    process: Type.Optional(
      Type.Literal('stopping', { description: 'Only there when this process is about to end' }),
    ),
  },
  { title: 'Readiness', examples: [{ database: 'up', engine: 'up' }] },
)

export const OpenApiSchema = openObject({
  title: 'OpenApiDocument',
  examples: [{ openapi: '3.1.0', info: { title: 'Posthorn' } }],
})
