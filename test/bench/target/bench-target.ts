import { tmpdir } from 'node:os'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Stack } from '../../../src/process/process-end.ts'
import { startGenerator, type PublishedEvent, type PublishJob } from '../harness/generator.ts'
import { startReceiver, type Arrival } from '../harness/receiver.ts'
import { BURST, loadOn } from '../load.ts'
import { columns } from '../measure/distribution.ts'
import { burstFigures, settlePublished, waitsOf } from '../measure/ledger.ts'
import { describeMachine } from '../measure/machine.ts'
import type { TargetOptions } from '../scenario.ts'
import type { Adapter } from './adapter.ts'
import { adapter as posthorn } from './posthorn.ts'

const PATH = '/ok/hook'
const BODY_BYTES = 1_024
const EVENTS = 5_000
const QUICK_EVENTS = 100
const WARM_UP_EVENTS = 2_000
const ROUNDS = 3
const PACES = [5, 50, 200]
const PACE_SECONDS = 20
const QUICK_PACE_SECONDS = 2

const BIAS =
  'Written by the authors of Posthorn, who chose what is measured: small bodies, one webhook that answers at once, and a publisher that waits for a durable acknowledgement.'

/**
 * Measures a running product from outside: bursts, and latency at fixed rates. Writes one line of JSON for each to
 * stdout, the manifest first. Returns the exit code: 1 where an event was refused, lost or delivered twice.
 */
export async function benchTarget(target: TargetOptions, quick: boolean, stack: Stack): Promise<number> {
  const adapter = target.adapterFile === null ? posthorn : await loadAdapter(target.adapterFile)
  const receiver = await startReceiver(null, { host: '0.0.0.0', idHeader: adapter.idHeader })
  stack.push('the receiver', () => receiver.stop())
  const generator = startGenerator()
  stack.push('the generator', () => generator.stop())
  const events = quick ? QUICK_EVENTS : EVENTS
  const machine = await describeMachine(tmpdir())
  const { url, settings } = target
  const load = { events, concurrency: 32, bodyBytes: BODY_BYTES, rounds: ROUNDS }
  write({ kind: 'manifest', product: adapter.name, url, settings, machine, load, bias: BIAS })

  const hookUrl = `http://${target.receiverHost}:${receiver.port}${PATH}`
  const customer = await adapter.createCustomer(url, hookUrl)
  stack.push('the customer', async () => {
    await customer.remove()
  })
  const { arrived, takeArrivals } = loadOn({ generator, receiver }, [url])
  const request = customer.request(BODY_BYTES)
  const problems: string[] = []

  async function publish(job: Pick<PublishJob, 'pace' | 'limit'>): Promise<[PublishedEvent[], Arrival[]]> {
    const published = await generator.publish({ apiUrls: [url], request, ...job }, (answer) =>
      customer.readIds(answer),
    )
    await arrived(PATH, { deliveries: published.filter(({ error }) => error === null).length })
    const arrivals = await takeArrivals()
    problems.push(...settlePublished(published, arrivals).problems)
    return [published, arrivals]
  }

  await publish({ pace: BURST, limit: { events: quick ? QUICK_EVENTS : WARM_UP_EVENTS } })
  for (let round = 1; round <= ROUNDS; round++) {
    const figures = burstFigures(...(await publish({ pace: BURST, limit: { events } })))
    write({ kind: 'burst', round, ...figures })
  }
  for (const perSecond of PACES) {
    const limit = { events: perSecond * (quick ? QUICK_PACE_SECONDS : PACE_SECONDS) }
    const [published, arrivals] = await publish({ pace: { kind: 'open', perSecond }, limit })
    write({ kind: 'latency', perSecond, ...limit, ...columns(waitsOf(published, arrivals)) })
  }
  write({ kind: 'end', problems })
  return problems.length === 0 ? 0 : 1
}

async function loadAdapter(file: string): Promise<Adapter> {
  const loaded = (await import(pathToFileURL(resolve(file)).href)) as { adapter?: Adapter }
  if (loaded.adapter === undefined) throw new Error(`${file} exports no adapter`)
  return loaded.adapter
}

function write(line: object): void {
  process.stdout.write(`${JSON.stringify(line)}\n`)
}
