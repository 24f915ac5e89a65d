import { expect } from 'chai'
import { builtInCatalogue } from '../../../src/catalogue/built-in.ts'
import { parseCatalogue } from '../../../src/catalogue/parse-catalogue.ts'
import { welcome } from '../../../src/dev/welcome.ts'

const instance = {
  apiUrl: 'http://127.0.0.1:3000',
  metricsUrl: null,
  uiUrl: null,
  receiverUrl: 'http://127.0.0.1:4000',
  databaseUrl: 'postgres://127.0.0.1/posthorn',
  logFile: 'posthorn.log',
  organisationId: 'org_demo',
  apiKey: 'key',
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

  it('shows commands for an event of the catalogue of the operator', () => {
    const example = { note: "it's" }
    const eventKeys = [
      { key: 'cache:expired', meaning: 'x', subscribable: false },
      { key: 'order:paid', meaning: 'x', example },
    ]
    const catalogue = parseCatalogue(JSON.stringify({ eventKeys }))
    expect(bodiesOf(welcome({ ...instance, catalogue }))).to.deep.equal([
      hook('/', 'order:paid'),
      { event: 'order:paid', data: example },
      hook('/fail', 'order:paid'),
      { name: 'Camping Zee', email: 'info@zee.example' },
    ])
  })
})
