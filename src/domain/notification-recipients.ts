import type { NotificationChannel } from './incident-rules.ts'

export type Recipient = { channel: NotificationChannel; recipient: string; name: string | null }

type People = {
  organisation: { email: string; supportEmail: string | null }
  members: readonly { name: string; email: string; pushSubscriptions: readonly string[] }[]
}

/**
 * Who is told of an incident (spec 6.4): the organisation's address (`supportEmail`, else `email`), the members that
 * may change its settings, and the push subscriptions of these. An address that several share gets one message.
 */
export function recipientsOf({ organisation, members }: People): Recipient[] {
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
