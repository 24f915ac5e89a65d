import { clock } from '../measure/clock.ts'
import type { Pace, PublishJob } from './generator.ts'

/** Runs many at a pace. `intendedAt`: when the pace requires it; null in a closed loop. Returns what each came to. */
export function runAtPace<Result>(
  pace: Pace,
  limit: PublishJob['limit'],
  runOne: (intendedAt: number | null) => Promise<Result>,
): Promise<Result[]> {
  return pace.kind === 'closed'
    ? closedLoop(pace.concurrency, limit, () => runOne(null))
    : openLoop(pace.perSecond, limit, runOne)
}

async function closedLoop<Result>(
  concurrency: number,
  limit: PublishJob['limit'],
  runOne: () => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = []
  const endsAt = 'durationMs' in limit ? clock() + limit.durationMs : Infinity
  let left = 'events' in limit ? limit.events : Infinity
  async function produce(): Promise<void> {
    while (left > 0 && clock() < endsAt) {
      left -= 1
      results.push(await runOne())
    }
  }
  await Promise.all(Array.from({ length: concurrency }, produce))
  return results
}

/** Begins on time, whatever has become of those before. */
async function openLoop<Result>(
  perSecond: number,
  limit: PublishJob['limit'],
  runOne: (intendedAt: number) => Promise<Result>,
): Promise<Result[]> {
  const gapMs = 1_000 / perSecond
  const events = 'events' in limit ? limit.events : Math.round(limit.durationMs / gapMs)
  const startsAt = clock() + gapMs
  const running: Promise<Result>[] = []
  await new Promise<void>((resolve) => {
    const sendDue = (): void => {
      for (let due = clock(); running.length < events;) {
        const intendedAt = startsAt + running.length * gapMs
        if (intendedAt > due) break
        running.push(runOne(intendedAt))
        due = clock()
      }
      if (running.length === events) resolve()
      else setTimeout(sendDue, startsAt + running.length * gapMs - clock())
    }
    sendDue()
  })
  return Promise.all(running)
}
