import { randomFillSync } from 'node:crypto'
import { v7 } from 'uuid'

/** Enough for a few hundred ids: a call of the system's generator for each of them costs more than all else about it. */
const pool = Buffer.allocUnsafeSlow(4096)
let used = pool.length

let lastMs = 0
let sequence = 0

/**
 * A new time-ordered id (UUID version 7): index-friendly, not guessable from its neighbours, and after all that this
 * process gave before.
 */
export function newId(): string {
  const random = sixteenBytes()
  const now = Date.now()
  if (now > lastMs) {
    lastMs = now
    // Half of its range is left to count up in.
    sequence = random.readUInt32BE(0) >>> 1
  } else {
    sequence++
  }
  return v7({ msecs: lastMs, seq: sequence, random })
}

/** 16 random bytes as 32 hexadecimal characters. For what is no secret; one of those is drawn by itself. */
export function randomHex(): string {
  return sixteenBytes().toString('hex')
}

/** No byte is given out twice. They are there until the next call. */
function sixteenBytes(): Buffer {
  if (used === pool.length) {
    randomFillSync(pool)
    used = 0
  }
  used += 16
  return pool.subarray(used - 16, used)
}
