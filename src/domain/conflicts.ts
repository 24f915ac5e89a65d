const CONFLICT = { status: 409, title: 'Not possible in this state' } as const

/** The problems with status 409, by their code. */
export const CONFLICTS = {
  delivery_completed: {
    ...CONFLICT,
    cause: 'The delivery is completed, so there is nothing to retry.',
    cure: 'None is needed. To send the data again, publish another event.',
  },
  webhook_disabled: {
    ...CONFLICT,
    cause: 'The webhook is disabled.',
    cure: 'Enable the webhook first.',
  },
  webhook_held: {
    ...CONFLICT,
    cause: 'The operator has put the webhook on hold; its `operatorHold` says since when and why.',
    cure: 'Have the operator end the hold. Everything but `enabled` can be changed meanwhile.',
  },
  not_subscribed: {
    ...CONFLICT,
    cause: 'The webhook is no longer subscribed to the event key of the delivery.',
    cure: 'Add the event key to the subscription again, then retry.',
  },
  test_delivery: {
    ...CONFLICT,
    cause: 'A test event gets one attempt and is never retried.',
    cure: 'Send another test event.',
  },
  delivery_changed: {
    ...CONFLICT,
    cause: 'Another request changed the delivery at the same time.',
    cure: 'Read the delivery, then try again.',
  },
  not_discardable: {
    ...CONFLICT,
    cause: 'The delivery is neither waiting nor permanently failed.',
    cure: 'Wait until an attempt in progress has ended. A final delivery needs no discard.',
  },
  too_many_webhooks: {
    status: 409,
    title: 'Too many webhooks',
    cause: 'The organisation has `WEBHOOKS_PER_ORGANISATION` webhooks, or 1,000.',
    cure: 'Delete a webhook, or have the operator raise the limit, up to 1,000.',
  },
  too_many_subscriptions: {
    ...CONFLICT,
    cause: 'The member has 20 push subscriptions.',
    cure: 'Remove the subscription of a browser that is no longer used.',
  },
  push_not_configured: {
    ...CONFLICT,
    cause: 'This installation sends no push messages.',
    cure: 'The operator sets `VAPID_PRIVATE_KEY`.',
  },
  another_member_signed_in: {
    status: 409,
    title: 'Another member is signed in',
    cause:
      'A portal link was opened in a browser where `signedIn` has a session; the link is for `requested`.',
    cure: 'Ask the user. To go on as the member of the link, send it again with `"replace": true`.',
  },
  api_key_name_taken: {
    ...CONFLICT,
    cause: 'The member has an API key of that name which is not revoked.',
    cure: 'Revoke the key first, or choose another name.',
  },
  member_api_keys_off: {
    ...CONFLICT,
    cause: 'On this installation members make no API keys of their own.',
    cure: 'The operator creates the key, or sets `MEMBER_API_KEYS=on`.',
  },
  too_many_api_keys: {
    ...CONFLICT,
    cause: 'The member has 50 API keys, those counted that were revoked within a day of their creation.',
    cure: 'Revoke keys that are not used any more, or wait a day.',
  },
  organisation_erasing: {
    ...CONFLICT,
    cause: 'The organisation is being erased, after a `DELETE` over the operator API.',
    cure: 'Wait until `GET` of the organisation is answered with 404, then create it again.',
  },
} as const
