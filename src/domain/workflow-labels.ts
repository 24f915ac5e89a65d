/** What starts and labels the workflow of a delivery: ids, and the URL, which is shown shortened. */
export type DeliveryLabel = {
  organisationId: string
  deliveryId: string
  webhookId: string
  eventKey: string
  url: string
}

/** What starts and labels the workflow of an incident: ids, the URL, which is shown shortened, and its beginning. */
export type IncidentLabel = {
  organisationId: string
  webhookId: string
  incidentId: string
  url: string
  openedAt: Date
}
