import {
  eraseOrganisation,
  type EraseDependencies,
  type ErasureProgress,
} from '../src/accounts/erase-organisation.ts'
import type { EraseOrganisationInput } from '../workflows/interface.ts'
import { withHeartbeat } from './with-heartbeat.ts'

/** Running twice is harmless: each batch locks the erasure, and erased rows are not found again. */
export function createEraseOrganisation(dependencies: EraseDependencies) {
  return ({ organisationId }: EraseOrganisationInput): Promise<ErasureProgress> =>
    withHeartbeat(({ cancelled }) => eraseOrganisation(dependencies, organisationId, cancelled))
}
