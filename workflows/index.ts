export { deliverEvent } from './deliver-event.ts'
export { retryDeliveries } from './retry-deliveries.ts'
