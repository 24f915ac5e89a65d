import { writeFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { formatTable } from '../bench/table.ts'
import { eventually } from '../helpers/eventually.ts'
import { startSteadyPublisher } from '../helpers/processes/steady-publisher.ts'
import { DISTURBANCES } from './disturbances.ts'
import { drawPicture } from './picture.ts'
import { createSampler, type Sample } from './samples.ts'
import { summarise } from './summary.ts'
import { API_KEY, createWorld, EVENT_KEYS, PUBLISH_PATH, type World } from './world.ts'

const MS_PER_MINUTE = 60_000
const durationMs = Number(process.env['POSTHORN_LASTING_MINUTES'] ?? 20) * MS_PER_MINUTE
const firstAttempt = process.env['POSTHORN_LASTING_FIRST_ATTEMPT'] ?? 'direct'
/** The picture, an SVG file, and next to it the samples as JSON. */
const pictureFile = process.env['POSTHORN_LASTING_PICTURE']

const EVENTS_PER_SECOND = 100
/** Of these, for the endpoint that refuses each once. */
const REFUSED_PER_SECOND = 5
/** Enough for a picture, and seldom enough for a p99. */
const SAMPLES = 240
/** A restart of PostgreSQL and the processes that have to notice it. */
const GIVE_UP_AFTER_MS = 60_000
/** Whatever was interrupted is attempted again, and confirmed. */
const CALM_LIMIT_MS = 180_000
const SET_UP_LIMIT_MS = 120_000
/** An attempt is repeated when what was in flight is lost: within the POST deadline of a disturbance. */
const IN_FLIGHT_MS = 20_000
const MEMORY_LIMIT_MIB = 1_024

describe('load that lasts', function () {
  this.timeout(durationMs + CALM_LIMIT_MS + SET_UP_LIMIT_MS)
  let world: World

  before(async () => {
    world = await createWorld({ FIRST_ATTEMPT: firstAttempt })
  })
  after(() => world.close())

  it(`loses nothing in ${durationMs / MS_PER_MINUTE} minutes of ${EVENTS_PER_SECOND} events a second and disturbances (${firstAttempt})`, async function () {
    const { ledger } = world
    let longestRefusalMs = 0
    const startedAt = performance.now()
    const instants: number[] = []
    const publish = (event: string, perSecond: number) =>
      startSteadyPublisher({
        apis: () => world.processes.map(({ url }) => url),
        path: PUBLISH_PATH,
        apiKey: API_KEY,
        event,
        perSecond,
        giveUpAfterMs: GIVE_UP_AFTER_MS,
        onAccepted(accepted) {
          longestRefusalMs = Math.max(longestRefusalMs, accepted.refusedForMs)
          ledger.note(accepted)
        },
      })
    const publishers = [
      publish(EVENT_KEYS.confirmed, EVENTS_PER_SECOND - REFUSED_PER_SECOND),
      publish(EVENT_KEYS.refusedOnce, REFUSED_PER_SECOND),
    ]
    const disturbing = Promise.all(
      DISTURBANCES.map(async (disturbance) => {
        const { from, to } = disturbance
        await delay(from * durationMs)
        instants.push(performance.now())
        await disturbance.disturb(world, (to - from) * durationMs)
        instants.push(performance.now())
      }),
    )
    const samples: Sample[] = []
    const sample = createSampler(world)
    while (performance.now() - startedAt < durationMs) {
      await delay(durationMs / SAMPLES)
      samples.push(await sample())
      if (pictureFile !== undefined) {
        writeFileSync(pictureFile, drawPicture(samples, DISTURBANCES, durationMs))
        writeFileSync(`${pictureFile}.json`, JSON.stringify(samples))
      }
    }
    await disturbing
    await Promise.all(publishers.map((publisher) => publisher.stop()))
    await eventually(() => {
      expect(ledger.open()).to.equal(0)
    }, CALM_LIMIT_MS)
    process.stdout.write(
      `\n${formatTable(`refused for ${Math.round(longestRefusalMs)} ms at most`, summarise(samples, DISTURBANCES, durationMs))}\n`,
    )
    this.test!.title += ` (${ledger.accepted} deliveries, ${ledger.repeats.length} came twice)`

    const unexplained = ledger.repeats.filter(
      ({ confirmedAt }) => !instants.some((instant) => Math.abs(instant - confirmedAt) < IN_FLIGHT_MS),
    )
    expect(unexplained).to.deep.equal([])
    expect(Math.max(...samples.map(({ memoryMib }) => memoryMib))).to.be.below(MEMORY_LIMIT_MIB)
  })
})
