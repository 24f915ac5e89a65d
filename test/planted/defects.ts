import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { FaultKind } from '../faults/play/record.ts'
import { replaceOnce } from '../helpers/mutate.ts'
import { testServers } from '../helpers/runner/servers.ts'

/** A defect as changes to a compiled copy of the product, and the promise by which the play is to find it. */
export type Defect = {
  what: string
  patches: readonly { file: string; text: string | RegExp; by: string }[]
  faultKinds: readonly FaultKind[]
  firstAttempt?: 'workflow' | 'overflow' | 'direct'
  rule: RegExp
  /** How long the play is, in ms, and how long it waits for its rest; 45,000 and 5,000 if not given. */
  playMs?: number
  calmLimitMs?: number
}

const PROTOCOL = 'src/deliveries/protocol'
const TAKES = /AND stop_reason_of\([^)]*\) IS NULL/

export const DEFECTS: readonly Defect[] = [
  {
    what: 'a claim that does not check whether the attempt is due',
    patches: [
      {
        file: `${PROTOCOL}/claim.sql`,
        text: "AND d.next_attempt_at <= delivery_now() + interval '3 ms'",
        by: '',
      },
    ],
    faultKinds: [],
    firstAttempt: 'workflow',
    rule: /no attempt early/,
    // It takes a signal to a workflow that waits.
    playMs: 240_000,
  },
  {
    what: 'a claim that does not check the lease of another run',
    patches: [{ file: `${PROTOCOL}/claim.sql`, text: 'AND d.lease_until < delivery_now())', by: ')' }],
    faultKinds: ['temporal_cut', 'temporal_silence', 'terminate'],
    rule: /no attempt twice/,
  },
  {
    what: 'a switch-off and a removed key that stop nothing',
    patches: [
      {
        file: `${PROTOCOL}/stop.sql`,
        text: "(d.state IN ('pending', 'waiting') OR d.state",
        by: "(d.state IN ('pending') OR d.state",
      },
      { file: `${PROTOCOL}/claim.sql`, text: TAKES, by: '' },
    ],
    faultKinds: [],
    rule: /does not take it/,
    // It takes a delivery that is due while its webhook is off.
    playMs: 240_000,
  },
  {
    what: 'a notification that is sent without its claim',
    patches: [
      {
        file: 'src/incidents/notifications/send-due.js',
        text: 'if (!(await retryWhileUnavailable(claimOnce, signal)))',
        by: 'askedAtMs = performance.now(); if (claimOnce === undefined)',
      },
    ],
    faultKinds: [],
    rule: /at most two notifications/,
  },
  {
    what: 'a failed attempt that is not counted',
    patches: [
      {
        file: `${PROTOCOL}/record-failure.sql`,
        text: 'attempt_requested = false, attempts = f.number,',
        by: 'attempt_requested = false, attempts = d.attempts,',
      },
    ],
    faultKinds: [],
    rule: /no attempt twice/,
  },
  {
    what: 'a sweeper that is off',
    patches: [
      {
        file: 'src/deliveries/recovery/sweeper.js',
        text: 'if (!dependencies.isServing())',
        by: 'if (dependencies)',
      },
    ],
    faultKinds: ['temporal_wipe', 'kill'],
    rule: /comes to its end/,
    calmLimitMs: 120_000,
  },
  {
    what: 'an Idempotency-Key that is ignored',
    patches: [
      {
        file: 'src/deliveries/publish/publish.js',
        text: 'if (idempotency === null) {',
        by: 'if (idempotency !== undefined) {',
      },
    ],
    faultKinds: [],
    rule: /acknowledged events/,
  },
]

/** Copies the compiled product with the changes, and returns its `posthorn` command. */
export function plant(patches: Defect['patches']): { program: string; remove: () => void } {
  const changed = patches.map((patch) => ({ file: patch.file, text: patched(patch) }))
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-planted-'))
  cpSync(installedFolder(), folder, { recursive: true, verbatimSymlinks: true })
  for (const { file, text } of changed) writeFileSync(join(folder, 'dist', file), text)
  return {
    program: join(folder, 'src/cli/bin.mjs'),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}

/** Returns the compiled file with the change. Throws where what it changes does not occur once. */
export function patched({ file, text, by }: Defect['patches'][number]): string {
  return replaceOnce(readFileSync(join(installedFolder(), 'dist', file), 'utf8'), text, by, file)
}

function installedFolder(): string {
  return dirname(dirname(dirname(testServers().posthorn)))
}
