import { accessSync, constants, statSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import type { Way } from './provision.ts'

/** Whether the file exists and this user may run it. */
export function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK)
    return statSync(file).isFile()
  } catch {
    return false
  }
}

/** The first program of that name on the PATH of `env`, or null. */
export function findOnPath(name: string, env: NodeJS.ProcessEnv): string | null {
  const folders = (env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '')
  return folders.map((folder) => join(folder, name)).find(isExecutable) ?? null
}

/** The program that an environment variable names. A wrong name is final: the user means that program. */
export function namedByEnvironment(variable: string, env: NodeJS.ProcessEnv): Way {
  return {
    name: variable,
    attempt: async () => {
      const path = env[variable] ?? ''
      if (path === '') return Promise.resolve({ why: 'not set' })
      if (isExecutable(path)) return Promise.resolve({ path })
      return Promise.resolve({ why: `${path} is not an executable file`, isFinal: true })
    },
  }
}

/** Finds the first of these files that can be run: an earlier start has put it into the cache. */
export function foundInCache(files: string[]): Way {
  return {
    name: 'the cache',
    attempt: async () => {
      const path = files.find(isExecutable)
      return Promise.resolve(path === undefined ? { why: `${files.join(' and ')} not there` } : { path })
    },
  }
}
