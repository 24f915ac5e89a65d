import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'
import type { FieldError } from '../problem-error.ts'
import { createRoundRobinQueue } from '../round-robin-queue.ts'
import { createTally } from '../tally.ts'
import { afterPauses } from '../timers.ts'
import type { EventKeyDefinition } from './catalogue.ts'
import type { ThreadData, ThreadReply, ThreadRequest } from './payload-thread.ts'

/**
 * `checked`: what is wrong with the payload. `stopped`: checking it took too long or too much memory. `busy`: it did not
 * fit into the queue, or waited too long in it. `ms`: the time that it took a thread.
 */
export type ThreadVerdict =
  { kind: 'checked'; errors: FieldError[]; ms: number } | { kind: 'stopped'; ms: number } | { kind: 'busy' }

/** Threads that check payloads for which the event loop has no time. They start when they are needed. */
export type PayloadThreads = {
  /** Never waits longer than the limits allow. Organisations take turns. */
  check(request: ThreadRequest & { organisationId: string }): Promise<ThreadVerdict>
  /** Stops the threads; what waits is `busy`. */
  close(): Promise<void>
}

type Limits = {
  threads: number
  /** For one payload. One of 256 KiB takes an ordinary schema some ten milliseconds. */
  checkTimeoutMs: number
  maxWaitMs: number
  /** Characters of all that waits; one organisation may have a quarter. */
  maxWaiting: number
}

const LIMITS: Limits = {
  // One processor is left to requests.
  threads: Math.max(1, Math.min(2, availableParallelism() - 1)),
  checkTimeoutMs: 250,
  maxWaitMs: 5_000,
  maxWaiting: 16 * 1024 * 1024,
}

const EXTENSION = import.meta.url.endsWith('.ts') ? 'mjs' : 'js'
const PROGRAM = new URL(`./payload-thread.${EXTENSION}`, import.meta.url)

/** To start a thread and to compile a schema, which is the operator's. */
const START_TIMEOUT_MS = 15_000

/** What a stopped thread counts for: its payload's time, and the start of the next one. */
const STOP_COST_MS = 1_000

/** For ajv, one payload and its first errors. */
const MAX_HEAP_MB = 64

/** Requests of short payloads take memory too. */
const MIN_SIZE = 4_096

type Job = {
  request: ThreadRequest
  organisationId: string
  size: number
  /** Ends the wait. */
  timer: NodeJS.Timeout
  resolve: (verdict: ThreadVerdict) => void
  reject: (error: unknown) => void
}

export function createPayloadThreads(
  eventKeys: readonly Pick<EventKeyDefinition, 'key' | 'schema'>[],
  limits: Partial<Limits> = {},
): PayloadThreads {
  const { threads, checkTimeoutMs, maxWaitMs, maxWaiting } = { ...LIMITS, ...limits }
  const schemas = new Map(eventKeys.flatMap(({ key, schema }) => (schema ? [[key, schema]] : [])))
  const all = Array.from({ length: threads }, () => createThread({ schemas }, checkTimeoutMs))
  const idle = [...all]
  /** Characters that wait, by organisation. */
  const waiting = createTally()
  let isClosed = false

  const queue = createRoundRobinQueue<Job>({
    concurrency: threads,
    hasRoom: () => true,
    async run(job) {
      leave(job)
      // As many run at once as there are threads.
      const thread = idle.pop() as Thread
      await thread.run(job.request).then(job.resolve, job.reject)
      idle.push(thread)
    },
  })

  function leave(job: Job): void {
    clearTimeout(job.timer)
    waiting.add(job.organisationId, -job.size)
  }

  function giveUp(isOver: (job: Job) => boolean): void {
    for (const job of queue.drain(isOver)) {
      leave(job)
      job.resolve({ kind: 'busy' })
    }
  }

  return {
    check({ organisationId, ...request }) {
      const isFull = waiting.total() >= maxWaiting || waiting.of(organisationId) >= maxWaiting / 4
      if (isClosed || isFull) return Promise.resolve({ kind: 'busy' })
      return new Promise((resolve, reject) => {
        const timer = setTimeout(() => giveUp((other) => other === job), maxWaitMs)
        const characters = Math.max(MIN_SIZE, request.json.length)
        const job: Job = { request, organisationId, size: characters, timer, resolve, reject }
        waiting.add(organisationId, job.size)
        queue.add(organisationId, job)
      })
    },
    async close() {
      isClosed = true
      giveUp(() => true)
      await Promise.all(all.map((thread) => thread.close()))
    },
  }
}

type Thread = { run(request: ThreadRequest): Promise<ThreadVerdict>; close(): Promise<void> }

/** A thread that runs one request at a time. One that takes too long or too much memory is replaced for the next. */
function createThread(data: ThreadData, checkTimeoutMs: number): Thread {
  let worker: Worker | null = null
  const resourceLimits = { maxOldGenerationSizeMb: MAX_HEAP_MB }

  const start = (): Worker => {
    const started = new Worker(PROGRAM, { workerData: data, env: {}, execArgv: [], resourceLimits })
    // Between two requests there is no other listener.
    started.on('error', () => undefined)
    started.once('exit', () => {
      if (worker === started) worker = null
    })
    // It keeps no process alive, and ends with it.
    started.unref()
    return started
  }

  const stop = async (): Promise<void> => {
    const stopped = worker
    worker = null
    await stopped?.terminate()
  }

  return {
    async run(request) {
      worker ??= start()
      try {
        const verdict = await askThread(worker, request, checkTimeoutMs)
        if (verdict.kind === 'stopped') await stop()
        return verdict
      } catch (error) {
        await stop()
        throw error
      }
    },
    close: stop,
  }
}

function askThread(worker: Worker, request: ThreadRequest, checkTimeoutMs: number): Promise<ThreadVerdict> {
  return new Promise((resolve, reject) => {
    let cancelLimit = limit(START_TIMEOUT_MS)

    /** While the process is paused, so are its threads: a limit that passed meanwhile begins once more. */
    function limit(ms: number): () => void {
      return afterPauses(ms, () => end(() => resolve(STOPPED)), ms)
    }

    function end(settle: () => void): void {
      cancelLimit()
      worker.off('message', onReply).off('error', onError).off('exit', onExit)
      settle()
    }

    function onReply(reply: ThreadReply): void {
      if (reply.kind === 'started') {
        cancelLimit()
        cancelLimit = limit(checkTimeoutMs)
        return
      }
      const { errors, ms } = reply
      // The thread's clock runs on while the process is paused.
      const tookMs = Math.min(ms, checkTimeoutMs)
      end(() => resolve(errors === null ? STOPPED : { kind: 'checked', errors, ms: tookMs }))
    }

    function onError(error: Error): void {
      const isOutOfMemory = 'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY'
      end(() => (isOutOfMemory ? resolve(STOPPED) : reject(error)))
    }

    function onExit(): void {
      end(() => resolve(STOPPED))
    }

    worker.on('message', onReply).on('error', onError).on('exit', onExit)
    worker.postMessage(request)
  })
}

const STOPPED: ThreadVerdict = { kind: 'stopped', ms: STOP_COST_MS }
