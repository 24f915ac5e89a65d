import type { DataSource } from 'typeorm'
import { isActiveOrganisation } from '../db/queries/erasures.ts'
import { notFound } from '../errors.ts'
import { CALLER_TTL_MS } from './caller-lookup.ts'
import { createTtlCache } from '../ttl-cache.ts'

/** Throws 404 unless there is an organisation of this id that is not being erased. */
export type OrganisationCheck = (organisationId: string) => Promise<void>

const MAX_ENTRIES = 10_000

export function createOrganisationCheck(dataSource: DataSource, ttlMs = CALLER_TTL_MS): OrganisationCheck {
  const cache = createTtlCache<true>({ ttlMs, maxEntries: MAX_ENTRIES })
  return async (organisationId) => {
    const find = async () =>
      (await isActiveOrganisation(dataSource, organisationId)) ? { value: true as const } : null
    if ((await cache(organisationId, find)) === null) throw notFound('organisation')
  }
}
