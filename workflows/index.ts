export { deliverEvent } from './deliver-event.ts'
export { incident } from './incident.ts'
export { eraseOrganisation, purge, retryDeliveries } from './jobs.ts'
