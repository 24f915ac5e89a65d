import { listAudit } from '../../db/queries/audit.ts'
import { FULL_ACCESS } from '../../domain/permissions.ts'
import { listRoute } from '../list-route.ts'
import { presentAuditEntry } from '../presenters/presenter.ts'
import type { Route } from '../route.ts'
import { AuditEntrySchema, AuditFilterSchema } from '../schemas/audit.ts'
import { EXAMPLE_IDS } from '../schemas/common.ts'

export const auditRoutes: readonly Route[] = [
  listRoute({
    path: '/api/orgs/:orgId/audit',
    operationId: 'listAudit',
    summary: 'See who did what, newest first',
    description:
      'Every management action, every access to a signing secret and every change at the command line, with member, key, address and time. Entries cannot be changed. Needs full access.',
    access: { kind: 'organisation', permission: FULL_ACCESS },
    title: 'AuditList',
    item: AuditEntrySchema,
    what: 'Entries',
    cursorPrefix: 'a1',
    exampleId: EXAMPLE_IDS.auditEntry,
    filter: AuditFilterSchema,
    open({ dataSource }, { actor, query: { webhookId = null, memberId = null, action = null } }) {
      const filter = { webhookId, memberId, action }
      return (range) => listAudit(dataSource, actor.organisationId, { ...filter, ...range })
    },
    present: presentAuditEntry,
  }),
]
