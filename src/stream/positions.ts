import { hkdfSync } from 'node:crypto'
import type { DataSource } from 'typeorm'
import { findEventPosition, isPositionValid, type StreamPosition } from '../db/queries/event-stream.ts'
import { parseUuid } from '../ids.ts'
import type { StreamStart } from './client-stream.ts'
import type { Feed } from './feed.ts'
import { createSecretBox, type EncryptionKey } from '../secret-box.ts'

/** Seals positions, so that clients can keep them. */
export type Positions = {
  seal(organisationId: string, position: StreamPosition): string
  /** Returns null for what was not sealed for this organisation, or with a key that is gone. */
  open(organisationId: string, sealed: string): StreamPosition | null
}

/** What `seal` returns. */
export const POSITION_PATTERN = '[A-Za-z0-9_-]{1,32}([|][A-Za-z0-9_-]{16,64}){3}'

const POSITION = new RegExp(`^${POSITION_PATTERN}$`)

/** Digits of each number: the length reveals nothing about it. */
const DIGITS = 16

/**
 * Builds positions. They are encrypted, since the number of the newest event reveals how much all organisations publish;
 * and each time anew, so that two positions do not show whether anything was published between them. The keys are derived:
 * streams encrypt so often that the keys of the signing secrets would wear out.
 */
export function createPositions(keys: readonly EncryptionKey[]): Positions {
  const derived = keys.map(({ id, key }) => ({ id, key: derive(key) }))
  const box = createSecretBox(derived, (organisationId) => `organisation:${organisationId}:position:v1`)
  return {
    seal: (organisationId, { sequence, atMs }) =>
      box.seal(organisationId, [sequence, atMs].map((value) => String(value).padStart(DIGITS, '0')).join('')),
    open(organisationId, sealed) {
      try {
        const text = box.open(organisationId, sealed)
        return { sequence: Number(text.slice(0, DIGITS)), atMs: Number(text.slice(DIGITS)) }
      } catch {
        return null
      }
    },
  }
}

function derive(key: Buffer): Buffer {
  return Buffer.from(hkdfSync('sha256', key, '', 'posthorn stream position v1', 32))
}

type Dependencies = { dataSource: DataSource; positions: Positions; feed: Pick<Feed, 'newest'> }

/**
 * Returns where a stream starts: after the event or position that its client names, or now, with a gap if that is unknown.
 */
export async function findStart(
  dependencies: Dependencies,
  { caller, lastEventId }: { caller: { organisationId: string }; lastEventId: string | null },
): Promise<StreamStart> {
  const { feed } = dependencies
  if (lastEventId === null) return { position: await feed.newest(), lastEventId, isGap: false }
  const position = await findPosition(dependencies, caller.organisationId, lastEventId)
  return { position: position ?? (await feed.newest()), lastEventId, isGap: position === null }
}

async function findPosition(
  { dataSource, positions }: Dependencies,
  organisationId: string,
  lastEventId: string,
): Promise<StreamPosition | null> {
  const eventId = parseUuid(lastEventId)
  if (eventId !== null) return findEventPosition(dataSource, organisationId, eventId)
  // What opens in spite of other characters, such as line breaks, would be sent back with them.
  const position = POSITION.test(lastEventId) ? positions.open(organisationId, lastEventId) : null
  if (position === null) return null
  return (await isPositionValid(dataSource, organisationId, position)) ? position : null
}
