import type { Bench, Row } from '../scenario.ts'
import type { Stage, WebhookPlan } from '../stage.ts'

/** What is published, and how often it comes back. */
export type Load = {
  eventKey: string
  /** Where the POSTs go. */
  path: string
  /** Webhooks that are subscribed to the key. */
  fanOut: number
  bodyBytes?: number
  /** Of the usual number of events: some take long. */
  share: number
}

/** One size of what grows. */
type Level = {
  size: number
  /** Adds to the stage what the size before lacks. */
  grow?: (bench: Bench, stage: Stage) => Promise<void>
  load: Load
  /** Further columns of its row, once it has grown. */
  describe?: (stage: Stage) => Promise<Row>
}

/** One thing that grows while the rest stays as it is: its sizes follow each other on one stage. */
export type Dimension = {
  title: string
  /** The column of the size. */
  column: string
  webhooks: readonly WebhookPlan[]
  levels: (quick: boolean) => Level[]
}
