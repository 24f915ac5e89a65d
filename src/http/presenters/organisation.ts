import type { OrganisationRow } from '../../db/queries/organisation-admin.ts'

export function presentOrganisation(organisation: OrganisationRow) {
  const { id, name, email, supportEmail, timeZone, erasure } = organisation
  return {
    id,
    name,
    email,
    supportEmail,
    timeZone,
    state: erasure === null ? 'active' : 'erasing',
    erasure:
      erasure === null
        ? null
        : { requestedAt: erasure.requestedAt.toISOString(), erased: erasure.erased, retained: [] },
  }
}
