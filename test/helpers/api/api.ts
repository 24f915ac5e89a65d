import type { DataSource } from 'typeorm'
import { builtInCatalogue } from '../../../src/catalogue/built-in-catalogue.ts'
import { countBacklog } from '../../../src/db/queries/backlog.ts'
import { createPayloadThreads } from '../../../src/catalogue/payload-threads.ts'
import type { CommittedDelivery } from '../../../src/deliveries/protocol/commit-events.ts'
import type { ApiDependencies } from '../../../src/http/api.ts'
import { createPublisher } from '../../../src/deliveries/publish/publish.ts'
import { createWebhookLocks } from '../../../src/webhooks/webhook-locks.ts'
import { createStreams } from '../../../src/stream/streams.ts'
import { createApp } from '../../../src/http/app.ts'
import { expectDocumented } from './documented.ts'
import { testOperatorKeys } from './operator.ts'
import { createAuthRefusals } from '../../../src/http/auth/refusals.ts'
import {
  createCallerLookup,
  createKnownCredentials,
  createOrganisationCheck,
} from '../../../src/accounts/caller-lookup.ts'
import { listen } from '../../../src/http/listen.ts'
import { OWN_BRAND } from '../../../src/http/pages/brand.ts'
import type { RateLimits } from '../../../src/http/limits/rate-limits.ts'
import { createMetrics } from '../../../src/observability/metrics.ts'
import {
  TEST_VAPID_PUBLIC_KEY,
  noBacklogLimit,
  testCommits,
  testPositions,
  testSecretBox,
} from '../database/factories.ts'
import { silentLogger } from '../silent-logger.ts'
import { type TestDatabase, useDatabase } from '../database/database.ts'

export type ApiResponse = { status: number; headers: Headers; text: string; json: unknown }

/** Returns the cookie that an answer sets, as a browser sends it back. */
export function cookieOf({ headers }: Pick<ApiResponse, 'headers'>): string {
  return (headers.get('set-cookie') ?? '').split(';')[0] ?? ''
}

export type TestApi = {
  url: string
  /** Deliveries that the API handed to the dispatcher. */
  started: CommittedDelivery[]
  /** Ids of deliveries whose workflow it woke, and of retry jobs that it started. */
  woken: string[]
  startedJobs: string[]
  /** Sends a request, and fails where the OpenAPI document does not state its answer. */
  call(method: string, path: string, options?: CallOptions): Promise<ApiResponse>
  close(): Promise<void>
}

/** `body` is sent as JSON, `raw` as it is. */
export type CallOptions = {
  apiKey?: string
  body?: unknown
  raw?: string | Uint8Array
  headers?: Record<string, string>
}

const NO_LIMITS: RateLimits = {
  management: null,
  publish: null,
  validation: null,
  authentication: null,
  open: null,
}

/** The real API, on a free port unless one is given, with the real database; workflows are only noted, not started. */
export async function createTestApi(
  dataSource: DataSource,
  overrides: Partial<ApiDependencies> = {},
  streaming: Partial<Parameters<typeof createStreams>[0]> = {},
  port = 0,
): Promise<TestApi> {
  const started: CommittedDelivery[] = []
  const dispatcher = { start: (deliveries: readonly CommittedDelivery[]) => void started.push(...deliveries) }
  const woken: string[] = []
  const startedJobs: string[] = []
  const metrics = overrides.metrics ?? createMetrics()
  const catalogue = overrides.catalogue ?? builtInCatalogue
  const logger = overrides.logger ?? silentLogger
  const known = createKnownCredentials()
  const rateLimits = overrides.rateLimits ?? NO_LIMITS
  const limits = { perOrganisation: 1_000, perProcess: 1_000 }
  const positions = testPositions
  const streams = createStreams({ dataSource, catalogue, positions, logger, metrics, limits, ...streaming })
  const payloadThreads = createPayloadThreads(catalogue.eventKeys, { checkTimeoutMs: 10_000 })
  const app = createApp({
    dataSource,
    clock: { nowMs: () => performance.timeOrigin + performance.now() },
    catalogue,
    payloadThreads,
    // Without a memory: what a test changes in the database counts for its next request.
    findCaller: createCallerLookup(dataSource, 0.001, known),
    requireOrganisation: createOrganisationCheck(dataSource, 0.001),
    known,
    authRefusals: createAuthRefusals({ limit: rateLimits.authentication, known, logger, metrics }),
    operatorKeys: testOperatorKeys,
    acceptsDemoKeys: true,
    secretBox: testSecretBox,
    workflows: { wake: ({ deliveryId }) => Promise.resolve(void woken.push(deliveryId)) },
    retryWorkflows: { start: ({ jobId }) => Promise.resolve(void startedJobs.push(jobId)) },
    erasureWorkflows: { start: () => Promise.resolve() },
    incidentWorkflows: { signal: () => Promise.resolve() },
    publish: createPublisher({ dataSource, commits: testCommits(), dispatcher, backlog: noBacklogLimit }),
    locks: createWebhookLocks(),
    sweep: null,
    stopping: new AbortController().signal,
    dispatcher,
    commits: testCommits(),
    webhooks: { changed: () => undefined },
    urlPolicy: { allowHttp: false, allowedCidrs: [] },
    trustedProxies: [],
    rateLimits,
    webhooksPerOrganisation: Infinity,
    memberApiKeys: true,
    keptDays: 30,
    vapidPublicKey: TEST_VAPID_PUBLIC_KEY,
    publicUrl: '',
    frameAncestors: [],
    brand: OWN_BRAND,
    temporalUi: null,
    readBacklog: () => countBacklog(dataSource),
    temporal: { workerLoad: () => null, isUp: () => Promise.resolve(true) },
    streams,
    logger,
    metrics,
    ...overrides,
  })
  const listening = await listen(app, { host: '127.0.0.1', port })
  return {
    url: listening.url,
    started,
    woken,
    startedJobs,
    async call(method, path, options) {
      const answer = await callApi(listening.url, method, path, options)
      // The document names the event keys of its catalogue.
      if (catalogue === builtInCatalogue) expectDocumented(method, path, answer)
      return answer
    },
    close: async () => {
      await Promise.all([streams.close(), listening.close(), payloadThreads.close()])
    },
  }
}

/** One request to a running API. */
export async function callApi(
  url: string,
  method: string,
  path: string,
  options: CallOptions = {},
): Promise<ApiResponse> {
  const { apiKey, body, raw } = options
  const content = body === undefined ? raw : JSON.stringify(body)
  const response = await fetch(`${url}${path}`, {
    method,
    headers: {
      ...(apiKey === undefined ? {} : { 'x-api-key': apiKey }),
      ...(content === undefined ? {} : { 'content-type': 'application/json' }),
      ...options.headers,
    },
    ...(content === undefined ? {} : { body: content }),
  }).catch((error: unknown) => {
    // The message of `fetch` is always `fetch failed`; the cause names the fault.
    const cause = error instanceof Error ? (error.cause ?? error) : error
    throw new Error(`${method} ${path}: ${String(cause)}`, { cause: error })
  })
  const text = await textOf(response)
  const isJson = response.headers.get('content-type')?.includes('json') === true
  return {
    status: response.status,
    headers: response.headers,
    text,
    json: isJson ? (JSON.parse(text) as unknown) : null,
  }
}

/** A stream has no end to wait for: who wants to see more of it than its headers reads it otherwise. */
async function textOf(response: Response): Promise<string> {
  if (response.headers.get('content-type')?.startsWith('text/event-stream') !== true) return response.text()
  await response.body?.cancel()
  return ''
}

/** What the tests of one `describe` share; filled before the first of them. */
export type ApiSuite = { readonly database: TestDatabase; readonly api: TestApi }

/** A database and an API of its own for the `describe` it is called in, closed and dropped after its tests. */
export function useApi(overrides: Partial<ApiDependencies> = {}): ApiSuite {
  const suite = { database: useDatabase() } as { database: TestDatabase; api: TestApi }
  before(async () => {
    suite.api = await createTestApi(suite.database.dataSource, overrides)
  })
  after(() => suite.api.close())
  return suite
}
