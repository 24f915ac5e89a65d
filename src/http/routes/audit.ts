import { listAudit, type AuditRow } from '../../db/queries/audit.ts'
import { FULL_ACCESS } from '../../domain/permissions.ts'
import { auditCursor } from '../cursor.ts'
import { routeWithQuery, type Route } from '../route.ts'
import { AuditListSchema, AuditQuerySchema } from '../schemas/audit.ts'

const listRoute = routeWithQuery({
  method: 'GET',
  path: '/api/orgs/:orgId/audit',
  operationId: 'listAudit',
  summary: 'See who did what, newest first',
  description:
    'Every management action, every look at a signing secret and every change at the command line, with member, key, address and time. Entries cannot be changed. Needs full access.',
  access: { kind: 'organisation', permission: FULL_ACCESS },
  query: AuditQuerySchema,
  responses: { 200: { description: 'One page', schema: AuditListSchema } },
  async handle({ dataSource }, { caller, query }) {
    const { webhookId, limit, cursor } = query
    const { page, last } = await listAudit(dataSource, caller.organisationId, {
      webhookId: webhookId ?? null,
      after: cursor === undefined ? null : auditCursor.parse(cursor),
      limit,
    })
    const nextCursor = last === null ? null : auditCursor.after(last)
    return { status: 200, body: { data: page.map(presentEntry), nextCursor } }
  },
})

export const auditRoutes: readonly Route[] = [listRoute]

function presentEntry({ at, ...entry }: AuditRow) {
  const { id, ...rest } = entry
  return { id, at: at.toISOString(), ...rest }
}
