import { defineSearchAttributeKey, SearchAttributeType } from '@temporalio/common'

/** The search attributes by which operators find deliveries in the Temporal UI. All are keywords. */
export const SEARCH_ATTRIBUTE_NAMES = ['OrganisationId', 'WebhookId', 'EventKey', 'DeliveryState'] as const

/** The typed keys for workflow starts. `DeliveryState` is set by the workflow, once it waits. */
export const searchAttributes = {
  organisationId: defineSearchAttributeKey('OrganisationId', SearchAttributeType.KEYWORD),
  webhookId: defineSearchAttributeKey('WebhookId', SearchAttributeType.KEYWORD),
  eventKey: defineSearchAttributeKey('EventKey', SearchAttributeType.KEYWORD),
}
