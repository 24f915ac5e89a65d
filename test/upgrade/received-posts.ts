import { RETRY_WAITS_MS } from '../../src/domain/retry-schedule.ts'
import type { Receiver } from '../helpers/receivers/receiver.ts'

type PostsById = Map<string, Receiver['posts']>

/** The POSTs of each delivery, in order of arrival. */
export function postsById(...receivers: Receiver[]): PostsById {
  const byId: PostsById = new Map()
  for (const post of receivers.flatMap(({ posts }) => posts)) {
    const id = String(post.headers['x-webhook-event-id'])
    const posts = byId.get(id)
    if (posts === undefined) byId.set(id, [post])
    else posts.push(post)
  }
  return byId
}

/** The least time in ms between the instant a retry was due and its arrival. */
export function earliestRetryMs(byId: PostsById): number {
  let earliest = Infinity
  for (const posts of byId.values())
    for (const [index, post] of posts.entries()) {
      const before = posts[index - 1]
      if (before === undefined) continue
      const wait = RETRY_WAITS_MS[index - 1] ?? 0
      earliest = Math.min(earliest, post.arrivedAt - before.answeredAt - wait)
    }
  return earliest
}
