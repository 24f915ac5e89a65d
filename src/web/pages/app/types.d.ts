import type { nothing, TemplateResult } from 'lit-html'
import type { Static } from 'typebox'
import type { ProblemSchema } from '../../../http/schemas/common.ts'
import type { DeliveryDetailSchema, DeliverySchema } from '../../../http/schemas/delivery.ts'
import type { IncidentSchema } from '../../../http/schemas/incident.ts'
import type { ActivitySchema, OverviewListSchema } from '../../../http/schemas/overview.ts'
import type { RetryJobSchema } from '../../../http/schemas/retry.ts'
import type { SessionSchema } from '../../../http/schemas/session.ts'
import type { createApi } from './lib/api.js'
import type { createTimes } from './lib/times.js'

/** What the API answers, as its own schemas say it. */
export type Problem = Static<typeof ProblemSchema>
export type Session = Static<typeof SessionSchema>
export type Overview = Static<typeof OverviewListSchema>['data'][number]
export type Activity = Static<typeof ActivitySchema>
export type Delivery = Static<typeof DeliverySchema>
export type DeliveryState = Delivery['state']
export type DeliveryDetail = Omit<Static<typeof DeliveryDetailSchema>, 'payload'> & {
  /** The envelope's text, token by token as it is sent. */
  payloadText: string
}
export type Attempt = DeliveryDetail['attempts'][number]
export type Incident = Static<typeof IncidentSchema>
export type RetryJob = Static<typeof RetryJobSchema>
export type EventKey = { key: string; meaning: string; permission: string; subscribable: boolean }

export type Template = TemplateResult | typeof nothing | string | number
export type Api = ReturnType<typeof createApi>
export type Times = ReturnType<typeof createTimes>

/** A part of the page with a state of its own. `stop` ends what it keeps asking for. */
export type View = { title: string; render(): Template; stop?: () => void }

/** What stands in the dialog; `close` is called by whatever closes it. */
export type DialogContent = { label: string; render(): Template; onClose?(): void }

/** What every view of a signed-in person works with. */
export type App = {
  session: Session
  api: Api
  times: Times
  /** Shows the state as it is now; many calls make one rendering. */
  update: () => void
  /** Shows another view of this page, such as `?webhook=…`. */
  go(search: string): void
  openDialog(content: DialogContent): void
  closeDialog(): void
  /** Says a short sentence, to screen readers too. */
  say(text: string): void
  signOut(): Promise<void>
}
