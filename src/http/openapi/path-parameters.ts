import { EXAMPLE_IDS } from '../schemas/common.ts'
import { PLATFORM_ID_PATTERN, UUID_PATTERN } from '../../ids.ts'
import type { Route } from '../route.ts'

/** The platform chooses these ids; all others are made by Posthorn. */
const GIVEN_ID = { type: 'string', pattern: PLATFORM_ID_PATTERN }
const OWN_ID = { type: 'string', format: 'uuid', pattern: UUID_PATTERN }

/** What each parameter of a path is, by its name. */
const PARAMETERS: Readonly<Record<string, { description: string; schema: object; example: string }>> = {
  orgId: { description: 'Id of the organisation', schema: GIVEN_ID, example: 'org_camping' },
  memberId: { description: 'Id of the member', schema: GIVEN_ID, example: 'mem_an' },
  id: { description: 'Id of the webhook', schema: OWN_ID, example: EXAMPLE_IDS.webhook },
  deliveryId: { description: 'Id of the delivery', schema: OWN_ID, example: EXAMPLE_IDS.delivery },
  eventId: { description: 'Id of the event', schema: OWN_ID, example: EXAMPLE_IDS.event },
  jobId: { description: 'Id of the retry job or replay', schema: OWN_ID, example: EXAMPLE_IDS.retryJob },
}

const SUBSCRIPTION = { description: 'Id of the push subscription', example: EXAMPLE_IDS.pushSubscription }
const API_KEY = { description: 'Id of the API key', example: EXAMPLE_IDS.apiKey }

/** Returns the parameters of the route's path. */
export function pathParametersOf({ path }: Pick<Route, 'path'>): object[] {
  return pathParameters(path).map((name) => ({
    name,
    in: 'path',
    required: true,
    ...(PARAMETERS[name] ?? { schema: OWN_ID, example: EXAMPLE_IDS.apiKey }),
    ...(name === 'id' && path.includes('/push-subscriptions/') ? SUBSCRIPTION : {}),
    ...(name === 'id' && path.includes('/api-keys/') ? API_KEY : {}),
  }))
}

/** Returns the names of the parameters in a path. */
export function pathParameters(path: string): string[] {
  return [...path.matchAll(/:(\w+)/g)].map(([, name]) => name ?? '')
}
