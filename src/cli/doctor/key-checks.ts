import type { DataSource } from 'typeorm'
import type { Config } from '../../config/load.ts'
import { countByKey } from '../../db/queries/webhooks.ts'
import { createSecretBox, type EncryptionKey } from '../../secret-box.ts'
import { keyRingProblems } from '../../process/start-checks.ts'
import { defineCheck, type Check, ok, problem, type Finding, type DatabaseAccess } from './check.ts'

/** Checks that the key ring opens what is stored, and names the operator keys. */
export function keyChecks(config: Partial<Config>, access: DatabaseAccess): Check[] {
  return [
    defineCheck(config, {
      name: 'keys.encryption',
      settings: ['databaseUrl', 'databasePooler', 'encryptionKeys'],
      needs: ['database.connection', 'database.migrations'],
      failure: 'database.check_failed',
      run: async (given) => checkKeyRing(await access.open(given), given.encryptionKeys),
    }),
    defineCheck(config, {
      name: 'keys.operator',
      settings: ['operatorKeys'],
      failure: 'settings.invalid',
      run: ({ operatorKeys }) => {
        const names = operatorKeys.map(({ name, scopes }) => `${name} (${scopes.join(', ')})`)
        const seen = names.length === 0 ? 'none here: without any there is no operator API' : names.join('; ')
        return Promise.resolve([ok('keys.operator', seen)])
      },
    }),
  ]
}

async function checkKeyRing(db: DataSource, ring: readonly EncryptionKey[]): Promise<Finding[]> {
  const box = createSecretBox(ring)
  const [counts, closed] = await Promise.all([countByKey(db), keyRingProblems(db, box)])
  const isKnown = (keyId: string): boolean => ring.some(({ id }) => id === keyId)
  const problems = counts.flatMap(({ keyId, count }) => {
    if (keyId === null) return [problem('keys.unsealed', `${count} stored secret(s) are not sealed`)]
    const reason = closed.get(keyId)
    if (reason === undefined) return []
    const code = isKnown(keyId) ? 'keys.wrong' : 'keys.missing'
    return [problem(code, `${count} secret(s) under key "${keyId}": ${reason}`)]
  })
  const older = counts.filter(
    ({ keyId }) => keyId !== null && keyId !== box.newestKeyId && !closed.has(keyId),
  )
  const isRotating = older.map(({ keyId, count }) =>
    problem(
      'keys.rotation_unfinished',
      `${count} secret(s) are under key "${String(keyId)}", and not under "${box.newestKeyId}"`,
    ),
  )
  if (problems.length + isRotating.length > 0) return [...problems, ...isRotating]
  const total = counts.reduce((sum, { count }) => sum + count, 0)
  return [ok('keys.encryption', `${total} secret(s), all under the newest key "${box.newestKeyId}"`)]
}
