import { AuditEntrySchema } from '../schemas/audit.ts'
import { EventKeyEntrySchema, EventSummarySchema } from '../schemas/event.ts'
import { ApiKeySchema, MemberSchema } from '../schemas/member.ts'
import { PushSubscriptionSchema } from '../schemas/push-subscription.ts'
import { ReplayCountSchema, ReplaySchema } from '../schemas/replay.ts'
import { RetryJobSchema } from '../schemas/retry.ts'
import { presenter } from './presenter.ts'

// Rows that every reader sees as they are, without what their schemas do not name: a key without its value, a push
// subscription without its keys.
export const presentApiKey = presenter(ApiKeySchema)
export const presentAuditEntry = presenter(AuditEntrySchema)
export const presentEventKey = presenter(EventKeyEntrySchema)
export const presentEventSummary = presenter(EventSummarySchema)
export const presentMember = presenter(MemberSchema)
export const presentPushSubscription = presenter(PushSubscriptionSchema)
export const presentReplay = presenter(ReplaySchema)
export const presentReplayCount = presenter(ReplayCountSchema)
export const presentRetryJob = presenter(RetryJobSchema)
