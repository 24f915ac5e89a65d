import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { Registry } from 'prom-client'
import { parse } from 'yaml'
import { COMMANDS } from '../../src/cli/command-line/commands.ts'
import { SETTINGS } from '../../src/config/settings.ts'
import { createDefine } from '../../src/observability/metrics/define.ts'
import { createGauges } from '../../src/process/metrics/scrape.ts'
import {
  DENIED_IPV4_CIDRS,
  DENIED_IPV6_CIDRS,
  GLOBAL_UNICAST_IPV6_CIDR,
} from '../../src/outbound/address-guard.ts'
import { readDocument } from '../helpers/documents/documents.ts'

type Values = {
  secrets: { keys: Record<string, string> }
  settings: Record<string, string>
  worker: { autoscaling: { enabled: boolean; metric: { name: string; selector: Record<string, string> } } }
  networkPolicy: { receivers: { ipv4Except: string[]; ipv6Except: string[] } }
}
type Schema = {
  properties: {
    settings: { propertyNames: { enum: string[] } }
    secrets: { properties: { keys: { propertyNames: { enum: string[] } } } }
  }
}

const CHART = fileURLToPath(new URL('../../deploy/helm/posthorn/', import.meta.url))
const read = (path: string): string => readFileSync(`${CHART}${path}`, 'utf8')

const values = parse(read('values.yaml')) as Values
const templates = readdirSync(`${CHART}templates`).map((name) => read(`templates/${name}`))
const template = templates.join('\n')
const settings = Object.values(SETTINGS)
const variables: string[] = settings.map(({ variable }) => variable)

/** What the chart sets itself. */
const fixed = new Set([...template.matchAll(/- name: ([A-Z][A-Z_]+)$/gm)].map(([, name = '']) => name))

describe('the Helm chart', () => {
  it('takes every secret from a file, and no other setting', () => {
    const secrets = settings.filter(({ isSecret }) => isSecret).map(({ variable }) => variable)
    expect(Object.keys(values.secrets.keys)).to.have.members(secrets)
    expect(template).to.include('- name: {{ $setting }}_FILE')
  })

  it('sets every setting of Posthorn or lets it be tuned, and knows no other', () => {
    const known = [...Object.keys(values.settings), ...Object.keys(values.secrets.keys), ...fixed]
    expect(new Set(known)).to.deep.equal(new Set(variables))
    for (const variable of Object.keys(values.settings)) {
      if (variable !== 'DATABASE_POOLER') expect([...fixed], variable).to.not.include(variable)
    }
  })

  it('leaves every default to Posthorn', () => {
    for (const [variable, value] of Object.entries(values.settings)) expect(value, variable).to.equal('')
  })

  it('has a key of the Secret for every secret without a default', () => {
    for (const { variable, fallback } of settings)
      if (fallback === undefined) expect(values.secrets.keys[variable], variable).to.not.equal('')
  })

  it('refuses names that are not in its values', () => {
    const { settings: ofSettings, secrets } = (JSON.parse(read('values.schema.json')) as Schema).properties
    expect(ofSettings.propertyNames.enum).to.deep.equal(Object.keys(values.settings))
    expect(secrets.properties.keys.propertyNames.enum).to.deep.equal(Object.keys(values.secrets.keys))
  })

  it('starts commands of the CLI', () => {
    expect(template).to.include('args: [migrate]').and.to.include('args: [{{ $component }}]')
    expect(template).to.include('range $component := list "api" "worker"')
    expect(COMMANDS.map(({ name }) => name)).to.include.members(['api', 'worker', 'migrate'])
  })

  it('has the version of package.json', () => {
    const { version } = JSON.parse(readDocument('package.json')) as { version: string }
    expect(parse(read('Chart.yaml'))).to.include({ version, appVersion: version })
  })

  it('keeps workers from the addresses that the address guard refuses', () => {
    const { ipv4Except, ipv6Except } = values.networkPolicy.receivers
    expect(ipv4Except).to.have.members(DENIED_IPV4_CIDRS)
    expect(ipv6Except).to.have.members(DENIED_IPV6_CIDRS)
    expect(template).to.include(`cidr: ${GLOBAL_UNICAST_IPV6_CIDR}`)
  })

  it('scales workers, where that is on, by a metric of Posthorn', () => {
    const { enabled, metric } = values.worker.autoscaling
    expect(enabled).to.equal(false)
    const registry = new Registry()
    createGauges(createDefine(registry))
    const defined = registry.getSingleMetric(metric.name) as unknown as { help: string; labelNames: string[] }
    expect(Object.keys(metric.selector)).to.deep.equal(defined.labelNames)
    for (const value of Object.values(metric.selector)) expect(defined.help).to.include(value)
    expect(read('README.md')).to.include(metric.name)
  })

  it('sets no secret itself', () => {
    expect(template).to.not.match(/^kind: Secret$/m)
  })
})
