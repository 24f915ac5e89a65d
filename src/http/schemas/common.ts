import { Type, type TSchema } from 'typebox'

export const IdSchema = Type.String({ format: 'uuid', description: 'UUID version 7' })

export const TimestampSchema = Type.String({
  format: 'date-time',
  description: 'ISO 8601, UTC, with milliseconds',
})

/** `options` are about the value and its absence together. */
export const orNull = <Schema extends TSchema>(schema: Schema, options: { description?: string } = {}) =>
  Type.Union([schema, Type.Null()], options)

export const EnvelopeSchema = Type.Object({}, { description: 'The envelope as it is delivered' })

export const ProblemSchema = Type.Object(
  {
    type: Type.String(),
    title: Type.String(),
    status: Type.Integer(),
    code: Type.String({ description: 'Stable; for programs' }),
    detail: Type.Optional(Type.String()),
    errors: Type.Optional(
      Type.Array(
        Type.Object({
          pointer: Type.String({
            description: 'JSON pointer into the body, or `/` and the name of a query parameter',
          }),
          code: Type.String(),
          detail: Type.String(),
        }),
      ),
    ),
    missingPermissions: Type.Optional(Type.Array(Type.String())),
  },
  { description: 'RFC 9457 problem' },
)
