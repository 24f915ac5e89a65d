import { Type } from 'typebox'
import { organisationFields } from '../../accounts/account-fields.ts'
import { PLATFORM_ID_PATTERN } from '../../ids.ts'
import { timestamp, orNull } from './common.ts'

/** An id that the platform gives. */
export const givenId = (example: string) =>
  Type.String({ pattern: PLATFORM_ID_PATTERN, description: 'Given by the platform', examples: [example] })

/** Body of `PUT`: the whole organisation; what is left out gets its default. */
export const PutOrganisationSchema = Type.Object(organisationFields, {
  title: 'PutOrganisation',
  additionalProperties: false,
  examples: [
    {
      name: 'Camping Zon',
      email: 'info@zon.example',
      supportEmail: null,
      timeZone: 'Europe/Brussels',
    },
  ],
})

const count = Type.Integer({ minimum: 0, examples: [1000] })

const ErasureSchema = Type.Object(
  {
    requestedAt: timestamp('2026-05-04T08:00:00.000Z'),
    erased: Type.Object(
      { events: count, deliveries: count, attempts: count, incidents: count, auditEntries: count },
      { title: 'Erased', description: 'How many are gone so far' },
    ),
    retained: Type.Array(Type.String(), {
      description: 'What is kept for legal reasons when it is done: nothing',
      examples: [[]],
    }),
  },
  { title: 'Erasure', description: 'Progress of the erasure' },
)

export const OrganisationSchema = Type.Object(
  {
    id: givenId('org_camping'),
    name: Type.String({ examples: ['Camping Zon'] }),
    email: Type.String({ examples: ['info@zon.example'] }),
    supportEmail: orNull(Type.String({ examples: ['help@zon.example'] }), {
      description: 'Where failure notifications go, when set',
    }),
    timeZone: Type.String({
      description: 'IANA name; of the dates in notifications',
      examples: ['Europe/Brussels'],
    }),
    state: Type.Enum(['active', 'erasing'], {
      title: 'OrganisationState',
      description:
        'While it is `erasing` only operators still see it; then it is gone, and answered with 404',
    }),
    erasure: orNull(ErasureSchema, {
      description: 'Null unless the organisation is being erased',
      examples: [null],
    }),
  },
  { title: 'Organisation' },
)
