export { deliverEvent } from './deliver-event.ts'
export { incident } from './incident.ts'
export { purge } from './purge.ts'
export { retryDeliveries } from './retry-deliveries.ts'
