import type { NotificationChannel } from './incident-rules.ts'

export type Recipient = { channel: NotificationChannel; recipient: string; name: string | null }

type Audience = {
  organisation: { email: string; supportEmail: string | null }
  members: readonly { name: string; email: string; pushSubscriptions: readonly string[] }[]
}

/**
 * Returns the recipients of an incident's notifications (spec 6.4): the organisation's address (`supportEmail`, else
 * `email`), the members that may change its settings, and their push subscriptions. A shared address gets one message.
 */
export function recipientsOf({ organisation, members }: Audience): Recipient[] {
  const own = { email: organisation.supportEmail ?? organisation.email, name: null }
  const byAddress = new Map<string, Recipient>()
  for (const { email, name } of [own, ...members]) {
    const address = email.toLowerCase()
    if (!byAddress.has(address)) byAddress.set(address, { channel: 'email', recipient: email, name })
  }
  const push = members.flatMap(({ name, pushSubscriptions }) =>
    pushSubscriptions.map((id): Recipient => ({ channel: 'push', recipient: id, name })),
  )
  return [...byAddress.values(), ...push]
}
