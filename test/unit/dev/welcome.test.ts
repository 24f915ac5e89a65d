import { expect } from 'chai'
import { builtInCatalogue } from '../../../src/catalogue/built-in-catalogue.ts'
import { parseCatalogue } from '../../../src/catalogue/parse-catalogue.ts'
import { welcome } from '../../../src/dev/welcome.ts'

const instance = {
  apiUrl: 'http://127.0.0.1:3000',
  metricsUrl: null,
  uiUrl: null,
  temporalAddress: '127.0.0.1:7233',
  temporalCli: { path: "/it's/temporal", version: '1.5.1' },
  environmentFile: '/data folder/environment',
  receiverUrl: 'http://127.0.0.1:4000',
  databaseUrl: 'postgres://127.0.0.1/posthorn',
  logFile: 'posthorn.log',
  organisationId: 'org_demo',
  apiKey: 'key',
  grants: { fullAccess: true, permissions: [] },
  isReceiverAllowed: true,
  operatorKey: null,
  notifyAfterSeconds: 300,
  otherMailServer: null,
}
const bodiesOf = (text: string): unknown[] =>
  [...text.matchAll(/ -d '(.*)'$/gm)].map(
    ([, body = '']) => JSON.parse(body.replaceAll("'\\''", "'")) as unknown,
  )
const hook = (path: string, key: string) => ({
  url: `${instance.receiverUrl}${path}`,
  subscribedEventKeys: [key],
  enabled: true,
})

describe('the welcome of npm start', () => {
  it('shows commands for the event of the README', () => {
    expect(bodiesOf(welcome({ ...instance, catalogue: builtInCatalogue }))).to.deep.equal([
      hook('/', 'customer:created'),
      { event: 'customer:created', data: { id: 'cus_1', firstName: 'Ada' } },
      hook('/fail', 'customer:created'),
      { name: 'Camping Zee', email: 'info@zee.example' },
    ])
  })

  it('shows commands for an event that its key may read, and an address that the outbound policy takes', () => {
    const grants = { fullAccess: false, permissions: ['webhook:manage', 'event:publish', 'invoice:read'] }
    const text = welcome({ ...instance, grants, isReceiverAllowed: false, catalogue: builtInCatalogue })
    expect(text).to.include('(also /fail and /slow; the outbound policy refuses its address)')
    const bodies = bodiesOf(text) as { url: string; subscribedEventKeys: string[]; event: string }[]
    const [key] = bodies[0]!.subscribedEventKeys
    expect(key).to.match(/^invoice:/)
    expect(bodies.slice(0, 3)).to.deep.include.members([
      { ...hook('/', key!), url: 'https://receiver.example.com/' },
      { ...hook('/fail', key!), url: 'https://receiver.example.com/fail' },
    ])
    expect(bodies[1]!.event).to.equal(key)
  })

  it('names the Temporal CLI, and quotes paths in the commands for it and for `posthorn doctor`', () => {
    expect(welcome({ ...instance, catalogue: builtInCatalogue }))
      .to.include("  Temporal CLI   /it's/temporal (1.5.1)\n")
      .and.include("  '/it'\\''s/temporal' workflow list --address 127.0.0.1:7233\n")
      .and.include("  (set -a; . '/data folder/environment'; npx posthorn doctor)\n")
  })

  it('leaves the Temporal CLI to the owner of another server', () => {
    const text = welcome({ ...instance, temporalCli: null, catalogue: builtInCatalogue })
    expect(text).to.include('  Temporal CLI   see your own Temporal server\n')
    expect(text).to.include("  'temporal' workflow list --address 127.0.0.1:7233\n")
  })

  it('shows commands for an event of the catalogue of the operator', async () => {
    const example = { note: "it's" }
    const eventKeys = [
      { key: 'cache:expired', meaning: 'x', subscribable: false },
      { key: 'order:paid', meaning: 'x', example },
    ]
    const catalogue = await parseCatalogue(JSON.stringify({ eventKeys }))
    expect(bodiesOf(welcome({ ...instance, catalogue }))).to.deep.equal([
      hook('/', 'order:paid'),
      { event: 'order:paid', data: example },
      hook('/fail', 'order:paid'),
      { name: 'Camping Zee', email: 'info@zee.example' },
    ])
  })
})
