import Type from 'typebox'
import { payloadShape } from './payload-shape.ts'
import type { PayloadShape } from './payload-shape.ts'

const settingsUpdate = Type.Object({
  openingHoursChanged: Type.Boolean({ description: 'True: revalidate what is cached of the opening hours' }),
})

/** Payloads of the `organizationSettings` family (spec 6.3). */
export const organizationSettingsPayloads: Readonly<Record<string, PayloadShape>> = {
  'organizationSettings:updated': payloadShape(settingsUpdate, { openingHoursChanged: true }),
}
