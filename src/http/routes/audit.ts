import { listAudit, type AuditRow } from '../../db/queries/audit.ts'
import { FULL_ACCESS } from '../../domain/permissions.ts'
import { routeWithQuery, type Route } from '../route.ts'
import { AuditListSchema, AuditQuerySchema } from '../schemas/audit.ts'
import { auditCursor } from '../validation/cursor.ts'

const listRoute = routeWithQuery({
  method: 'GET',
  path: '/api/orgs/:orgId/audit',
  operationId: 'listAudit',
  summary: 'See who did what, newest first',
  description:
    'Every management action, every access to a signing secret and every change at the command line, with member, key, address and time. Entries cannot be changed. Needs full access.',
  access: { kind: 'organisation', permission: FULL_ACCESS },
  query: AuditQuerySchema,
  responses: {
    200: {
      description: 'One page',
      schema: AuditListSchema,
      links: { listAudit: { cursor: '$response.body#/nextCursor' } },
    },
  },
  async handle({ dataSource }, { actor, query }) {
    const { webhookId = null, memberId = null, action = null, limit, cursor } = query
    const { page, last } = await listAudit(dataSource, actor.organisationId, {
      webhookId,
      memberId,
      action,
      after: cursor === undefined ? null : auditCursor.parse(cursor),
      limit,
    })
    const nextCursor = last === null ? null : auditCursor.after(last)
    return { status: 200, body: { data: page.map(presentAuditEntry), nextCursor } }
  },
})

export const auditRoutes: readonly Route[] = [listRoute]

function presentAuditEntry(entry: AuditRow) {
  const { id, at, memberId, apiKeyId, action, webhookId, deliveryId, details, address, requestId } = entry
  return {
    id,
    at: at.toISOString(),
    memberId,
    apiKeyId,
    action,
    webhookId,
    deliveryId,
    details,
    address,
    requestId,
  }
}
