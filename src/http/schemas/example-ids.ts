/** Ids in the examples of the OpenAPI document: the same thing has the same id wherever it is shown. */
export const EXAMPLE_IDS = {
  webhook: '01976f3e-8c1d-7a52-9b40-6d1f2e3a4b5c',
  event: '01977012-4f0a-7c31-8e25-90ab5c6d7e8f',
  delivery: '01977012-4f0b-7d02-a1b3-c4d5e6f70819',
  retryJob: '01977a40-0b6c-7f11-b2c3-d4e5f6a7b8c9',
  incident: '01977012-6a2d-7e44-9c0d-1e2f3a4b5c6d',
  pushSubscription: '01976f40-11aa-7b0c-8d1e-2f3a4b5c6d7e',
  auditEntry: '01976f3e-8c20-7a01-b234-56789abcdef0',
  apiKey: '01976e00-0a1b-7c2d-9e3f-405162738495',
} as const
