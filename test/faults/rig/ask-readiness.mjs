// A process that requests `/readyz` of the URL in its argument every 10 ms. SIGTERM ends it: it prints the status and the
// duration in ms of each answer as JSON. It does nothing else, so that no work of the test counts as a delay.
import { Agent, get } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'

const url = process.argv[2]
const agent = new Agent({ keepAlive: true })
const answers = []

process.on('SIGTERM', () => process.stdout.write(JSON.stringify(answers), () => process.exit(0)))

for (;;) {
  const startedAtMs = performance.now()
  const status = await new Promise((resolve) => {
    get(`${url}/readyz`, { agent }, (answer) => {
      answer.resume().once('end', () => resolve(answer.statusCode))
    }).once('error', (error) => resolve(String(error)))
  })
  answers.push({ status, ms: performance.now() - startedAtMs })
  await delay(10)
}
