import Type from 'typebox'
import { hexadecimal, ipAddress, payloadShape } from './payload-shape.ts'
import type { PayloadShape } from './payload-shape.ts'

const adoptionRequest = Type.Object({
  adoptionId: Type.String(),
  efuseId: hexadecimal,
  requestedFromIp: Type.Optional(ipAddress),
  isNew: Type.Optional(Type.Boolean()),
})

/** Payloads of the `controller` family (spec 6.3). */
export const controllerPayloads: Readonly<Record<string, PayloadShape>> = {
  'controller:adoption:requested': payloadShape(adoptionRequest, {
    adoptionId: 'ado_21c4e9',
    efuseId: '7cdfa1b2c3d4',
    requestedFromIp: '203.0.113.24',
    isNew: true,
  }),
}
