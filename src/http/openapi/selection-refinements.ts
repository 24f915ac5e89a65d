import { RETRY_MODES } from '../../domain/retry-mode.ts'
import { DiscardDeliveriesSchema, RetryDeliveriesSchema } from '../schemas/retry.ts'
import { replaced, type Refinements } from './components.ts'

const { mode, id, deliveryIds, filter } = RetryDeliveriesSchema.properties

/** Of a whole webhook, or of all: without the mode that takes no less than a selection. */
const wholeMode = { ...mode, enum: RETRY_MODES.filter((name) => name !== 'undelivered') }

/** Bodies that select deliveries: one schema for each set of members that belong together. */
export const SELECTION_REFINEMENTS: Refinements = {
  RetryDeliveries: oneOf(
    variant('RetryAllDeliveries', { mode: wholeMode, id }, ['mode']),
    variant('RetryNamedDeliveries', { mode, id, deliveryIds }),
    variant('RetryFilteredDeliveries', { mode, id, filter }),
  ),
  DiscardDeliveries: oneOf(
    variant('DiscardNamedDeliveries', { deliveryIds: DiscardDeliveriesSchema.properties.deliveryIds }),
    variant('DiscardFilteredDeliveries', { filter: DiscardDeliveriesSchema.properties.filter }),
  ),
}

function oneOf(...variants: object[]) {
  return replaced({ oneOf: variants })
}

function variant(title: string, properties: object, required = Object.keys(properties)) {
  return { type: 'object', title, properties, required, additionalProperties: false }
}
