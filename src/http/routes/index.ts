import type { Route } from '../route.ts'
import { eventRoutes } from './events.ts'
import { systemRoutes } from './system.ts'
import { webhookRoutes } from './webhooks.ts'

/** Every route of the API. */
export const routes: readonly Route[] = [...webhookRoutes, ...eventRoutes, ...systemRoutes]
