import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))

/** The folders of each lane of a suite. A test belongs to the lane that names the innermost folder around it. */
const SUITES: Record<string, string[][]> = {
  fast: [
    // Only here may a worker run as a process: they all keep the one retention schedule.
    ['test/e2e'],
    // What mostly waits, for bounds of time to pass and for other processes.
    [
      'test/unit',
      'test/workflows',
      ...['dev', 'notifications', 'outbound'].map((name) => `test/integration/${name}`),
    ],
    ['test/integration'],
  ],
  browser: [['test/browser']],
  histories: [['test/histories']],
  slow: [['test/slow', 'test/load']],
}

/** The test files of a suite, lane by lane: its lanes run at the same time. */
export function lanesOf(suite: string): string[][] {
  const lanes = SUITES[suite]
  if (lanes === undefined) throw new Error(`no suite "${suite}": ${Object.keys(SUITES).join(', ')}`)
  const named = lanes.flat()
  const homeOf = (file: string): string | undefined =>
    named.filter((folder) => file.startsWith(`${folder}/`)).sort((a, b) => b.length - a.length)[0]
  const files = testFiles()
  return lanes.map((folders) => files.filter((file) => folders.includes(homeOf(file) ?? '')))
}

/** All there are, in order. */
export function testFiles(): string[] {
  return readdirSync(join(ROOT, 'test'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.test.ts'))
    .map((file) => `test/${file}`)
    .sort()
}
