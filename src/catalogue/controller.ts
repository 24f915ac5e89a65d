import Type from 'typebox'
import { hexadecimal, payloadShape } from './payload-shape.ts'
import type { PayloadShape } from './payload-shape.ts'

const adoptionRequest = Type.Object({
  adoptionId: Type.String(),
  efuseId: hexadecimal,
  requestedFromIp: Type.Optional(Type.String({ description: 'IP address' })),
  isNew: Type.Optional(Type.Boolean()),
})

/** Nothing else of it is known. */
const controller = Type.Object({
  type: Type.Optional(Type.Enum(['ACCESS', 'SHOWER', 'CHARGE_POINT'])),
})

const controllerPayload = payloadShape(controller, { type: 'ACCESS' })

/** Payloads of the `controller` family (spec 6.3, enumerations 2.4). */
export const controllerPayloads: Readonly<Record<string, PayloadShape>> = {
  'controller:created': controllerPayload,
  'controller:updated': controllerPayload,
  'controller:deleted': controllerPayload,
  'controller:adoption:requested': payloadShape(adoptionRequest, {
    adoptionId: 'ado_21c4e9',
    efuseId: '7cdfa1b2c3d4',
    requestedFromIp: '203.0.113.24',
    isNew: true,
  }),
}
