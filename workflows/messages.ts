import { defineQuery, defineSignal } from '@temporalio/workflow'
import type { DeliverySnapshot } from '../src/domain/workflow-inputs.ts'

/**
 * Requests the next attempt at once. `isRecorded`: the row has the request; without it (a signal sent by an operator) the
 * workflow records it first. The row decides what happens.
 */
export const retrySignal = defineSignal<[{ isRecorded: boolean }?]>('retry')

/** Has the workflow read its row, which may be final, and end if it is. */
export const stopSignal = defineSignal('stop')

export const deliveryStateQuery = defineQuery<DeliverySnapshot>('deliveryState')

/** The row has changed: opened, failing again, exhausted or closed. */
export const changedSignal = defineSignal('changed')
