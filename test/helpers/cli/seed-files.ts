import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { seedFromFile } from '../../../src/cli/seed.ts'
import { useApi } from '../api/api.ts'

export const KEY = 'camping-key-in-clear-0001-Wq7ZrT5n'

/** A member without full access. */
export const an = {
  id: 'mem_an',
  name: 'An',
  email: 'an@zon.example',
  fullAccess: false,
  pushEnabled: true,
  permissions: [
    'webhook:read',
    'webhook:manage',
    'invoice:read',
    'organizationSettings:update',
    'event:publish',
  ],
  apiKeys: [{ name: 'ci', key: KEY }],
}
/** An organisation with that member. */
export const camping = {
  id: 'org_camping',
  name: 'Camping Zon',
  email: 'info@zon.example',
  supportEmail: null,
  timeZone: 'Europe/Brussels',
  members: [an],
}
/** The content of a seed file with these organisations. */
export const seedOf = (...organisations: object[]) => ({ organisations })
/** The content of a seed file whose one member is changed. */
export const withMember = (change: object) => seedOf({ ...camping, members: [{ ...an, ...change }] })

/** Seed files in a folder that lasts as long as the suite. `write` takes text as it is, and anything else as JSON. */
export function useSeedFiles(): { write(content: unknown): string; pathOf(name: string): string } {
  let folder = ''
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'posthorn-seed-'))
  })
  after(() => {
    rmSync(folder, { recursive: true, force: true })
  })
  const pathOf = (name: string): string => join(folder, name)
  return {
    pathOf,
    write(content) {
      const file = pathOf('seed.json')
      writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content))
      return file
    },
  }
}

/** The API on a database that is empty before each test; `seed` brings a seed file into it. */
export function useSeededApi() {
  const suite = useApi()
  const files = useSeedFiles()
  beforeEach(() => suite.database.dataSource.query('TRUNCATE organisation CASCADE'))
  return Object.assign(suite, {
    files,
    seed: (content: unknown) => seedFromFile(suite.database.url, files.write(content)),
  })
}
