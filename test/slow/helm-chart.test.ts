import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { parseAllDocuments } from 'yaml'
import { ALL_SETTINGS, loadConfig } from '../../src/config/load.ts'
import {
  OTHER_KUBERNETES,
  PROVIDE_TIMEOUT_MS,
  provideHelm,
  provideOtherReader,
  provideReader,
} from '../helpers/manifests/go-tools.ts'
import { runProgram, type Ended } from '../helpers/manifests/run-program.ts'

type Probe = { httpGet: { path: string; port: string } }
type Container = {
  args: string[]
  env: { name: string; value: string }[]
  ports?: { name: string; containerPort: number }[]
  securityContext: object
  resources: { limits?: { cpu?: string; memory?: string } }
  livenessProbe?: Probe
  readinessProbe?: Probe
}
type PodSpec = {
  terminationGracePeriodSeconds?: number
  securityContext: object
  containers: Container[]
  volumes: { name: string; secret?: { items: { key: string; path: string }[] } }[]
}
type Peer = { ipBlock?: { cidr: string } }
type Rule = { to: Peer[]; ports: { port: number }[] }
type IngressRule = { from?: Peer[]; ports: { port: number }[] }
type Manifest = {
  kind: string
  metadata: { name: string; annotations?: Record<string, string> }
  spec: {
    replicas?: number
    template: { spec: PodSpec }
    egress: Rule[]
    ingress: IngressRule[]
    metrics: object[]
  }
}

const CHART = fileURLToPath(new URL('../../deploy/helm/posthorn', import.meta.url))

/** Without it a `helm` built with Go takes the oldest Kubernetes. */
const KUBERNETES = '1.31'

const REQUIRED = {
  secrets: { existingSecret: 'posthorn' },
  settings: { TEMPORAL_ADDRESS: 'temporal:7233' },
  networkPolicy: {
    postgresql: { to: [{ ipBlock: { cidr: '10.0.5.0/24' } }] },
    temporal: { to: [{ podSelector: { matchLabels: { app: 'temporal' } } }] },
  },
}
const EVERYTHING = {
  ...REQUIRED,
  secrets: {
    existingSecret: 'posthorn',
    keys: {
      POSTHORN_OPERATOR_KEYS: 'operator',
      TEMPORAL_API_KEY: 'api',
      SMTP_PASSWORD: 'smtp',
      VAPID_PRIVATE_KEY: 'vapid',
      RELAY_DATABASE_URL: 'outbox',
      RELAY_OPERATOR_KEY: 'relay',
    },
  },
  settings: {
    ...REQUIRED.settings,
    SMTP_HOST: 'mail.example.com',
    SMTP_PORT: 465,
    SHUTDOWN_GRACE_MS: 60_000,
    PUBLISH_BACKLOG_LIMIT: 12_000_000,
    RELAY_KEEP_HOURS: 48,
    POSTHORN_ALLOWED_CIDRS: '10.1.0.0/16, 10.2.0.0/16',
    POSTHORN_ALLOW_HTTP: true,
  },
  temporalTls: { existingSecret: 'temporal-tls', caKey: 'ca.crt', certKey: 'tls.crt', keyKey: 'tls.key' },
  catalogue: { existingConfigMap: 'catalogue' },
  brandLogo: { existingConfigMap: 'logo', key: 'logo.png' },
  worker: { autoscaling: { enabled: true } },
  relay: { enabled: true },
  networkPolicy: {
    ...REQUIRED.networkPolicy,
    platformPostgresql: { to: [{ ipBlock: { cidr: '10.0.6.0/24' } }] },
    api: { from: [{ ipBlock: { cidr: '10.0.7.0/24' } }] },
    metrics: { from: [{ ipBlock: { cidr: '10.0.8.0/24' } }] },
  },
  ingress: { enabled: true, className: 'nginx', tlsSecretName: 'tls', annotations: { a: 'b' } },
  serviceMonitor: { enabled: true, labels: { release: 'prometheus' } },
  imagePullSecrets: [{ name: 'registry' }],
  tolerations: [{ key: 'hooks', operator: 'Exists' }],
}

const SECRETS = {
  DATABASE_URL: 'postgres://posthorn:secret@10.0.5.1:5432/posthorn',
  POSTHORN_ENCRYPTION_KEYS: `k1:${'0'.repeat(64)}`,
}

describe('the Helm chart, as Helm renders it', function () {
  let helm: string
  let reader: string

  before(async function () {
    this.timeout(2 * PROVIDE_TIMEOUT_MS)
    const helmPath = await provideHelm()
    const readerPath = await provideReader('kubernetes')
    if (helmPath === null || readerPath === null) this.skip()
    helm = helmPath
    reader = readerPath
  })

  const run = (command: string[], values: object, kubernetes = KUBERNETES): Ended =>
    runProgram(helm, [...command, CHART, '--values', '-', '--kube-version', `${kubernetes}.0`], {
      input: JSON.stringify(values),
    })
  const refusal = (values: object): string => {
    const { status, stderr } = run(['template', 'hooks'], values)
    expect(status, stderr).to.equal(1)
    return stderr
  }
  function render(values: object): { text: string; manifests: Manifest[] } {
    const { status, stdout, stderr } = run(['template', 'hooks'], values)
    expect(status, stderr).to.equal(0)
    const manifests = parseAllDocuments(stdout).map((document) => document.toJS() as Manifest)
    return { text: stdout, manifests }
  }
  function find(values: object, kind: string, name: string): Manifest {
    const found = render(values).manifests.find((one) => one.kind === kind && one.metadata.name === name)
    if (found === undefined) throw new Error(`no ${kind} ${name}`)
    return found
  }
  const podOf = (component: 'api' | 'worker' | 'migrate' | 'relay', values: object): PodSpec => {
    const kind = component === 'migrate' ? 'Job' : 'Deployment'
    return find(values, kind, `hooks-posthorn-${component}`).spec.template.spec
  }
  const envOf = ({ containers }: PodSpec): Record<string, string> =>
    Object.fromEntries(containers[0]!.env.map(({ name, value }) => [name, value]))

  for (const release of Object.keys(OTHER_KUBERNETES) as (keyof typeof OTHER_KUBERNETES)[]) {
    it(`has manifests that Kubernetes ${release} knows, field by field`, async function () {
      this.timeout(PROVIDE_TIMEOUT_MS)
      const other = await provideOtherReader(release)
      if (other === null) return this.skip()
      for (const values of [REQUIRED, EVERYTHING]) {
        const { status, stdout, stderr } = run(['template', 'hooks'], values, release)
        expect(status, stderr).to.equal(0)
        const read = runProgram(other, [], { input: stdout })
        expect(read.status, read.stderr).to.equal(0)
        expect(read.stdout.trim().split('\n')).to.include.members(['Deployment', 'Job', 'NetworkPolicy'])
      }
    })
  }

  for (const [name, values] of Object.entries({ 'what is required': REQUIRED, everything: EVERYTHING })) {
    it(`passes helm lint --strict with ${name}`, () => {
      const { status, stdout, stderr } = run(['lint', '--strict'], values)
      expect(status, stdout + stderr).to.equal(0)
    })

    it(`has manifests that Kubernetes knows, field by field, with ${name}`, () => {
      const { text, manifests } = render(values)
      const { status, stdout, stderr } = runProgram(reader, [], { input: text })
      expect(status, stderr).to.equal(0)
      const known = manifests.map(({ kind }) => kind).filter((kind) => kind !== 'ServiceMonitor')
      expect(stdout.trim().split('\n')).to.have.members(known)
      expect(known).to.include.members(['Deployment', 'Job', 'PodDisruptionBudget', 'NetworkPolicy'])
    })

    it(`gives each process an environment that it accepts with ${name}`, () => {
      for (const component of ['api', 'worker'] as const) {
        // The files of secrets exist in the pod only.
        const isInline = ([, value]: [string, string]): boolean => !value.startsWith('/run/secrets/posthorn/')
        const env = Object.entries(envOf(podOf(component, values))).filter(isInline)
        expect(() => loadConfig({ ...SECRETS, ...Object.fromEntries(env) }, ALL_SETTINGS)).to.not.throw()
      }
    })
  }

  it('probes the API on its port, and workers on the port of their metrics', () => {
    for (const [component, port, number] of [
      ['api', 'http', 3000],
      ['worker', 'metrics', 9464],
    ] as const) {
      const container = podOf(component, REQUIRED).containers[0]!
      expect(container.args).to.deep.equal([component])
      expect(container.livenessProbe?.httpGet).to.deep.equal({ path: '/healthz', port })
      expect(container.readinessProbe?.httpGet).to.deep.equal({ path: '/readyz', port })
      expect(container.ports).to.deep.include({ name: port, containerPort: number })
      expect(envOf(podOf(component, REQUIRED))).to.include({ METRICS_HOST: '0.0.0.0', METRICS_PORT: '9464' })
    }
    const onlyIpv6 = envOf(podOf('api', { ...REQUIRED, listenAddress: '::' }))
    expect(onlyIpv6).to.include({ HOST: '::', METRICS_HOST: '::' })
  })

  it('migrates before each installation and upgrade', () => {
    const { metadata } = find(REQUIRED, 'Job', 'hooks-posthorn-migrate')
    expect(metadata.annotations).to.include({ 'helm.sh/hook': 'pre-install,pre-upgrade' })
    expect(envOf(podOf('migrate', EVERYTHING))).to.deep.equal({
      DATABASE_URL_FILE: '/run/secrets/posthorn/DATABASE_URL',
    })
    const policy = find(REQUIRED, 'NetworkPolicy', 'hooks-posthorn-migrate-egress')
    expect(policy.metadata.annotations, 'before the Job').to.include({
      'helm.sh/hook': 'pre-install,pre-upgrade',
      'helm.sh/hook-weight': '-1',
    })
    expect(policy.spec.egress.flatMap(({ ports }) => ports.map(({ port }) => port))).to.deep.equal([
      53, 53, 5432,
    ])
  })

  it('runs nothing as root, and nothing that can write to its image', () => {
    for (const component of ['api', 'worker', 'migrate'] as const) {
      const { securityContext, containers } = podOf(component, REQUIRED)
      expect(securityContext).to.include({ runAsNonRoot: true, runAsUser: 1000 })
      expect(containers[0]!.securityContext).to.deep.equal({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      })
    }
  })

  it('mounts each secret that a process reads, and the operator keys in the API only', () => {
    for (const component of ['api', 'worker'] as const) {
      const pod = podOf(component, EVERYTHING)
      const items = pod.volumes.find(({ name }) => name === 'secrets')?.secret?.items ?? []
      const files = Object.values(envOf(pod)).filter((value) => value.startsWith('/run/secrets/posthorn/'))
      expect(files).to.have.members(items.map(({ path }) => `/run/secrets/posthorn/${path}`))
      const hasOperatorKeys = items.some(({ path }) => path === 'POSTHORN_OPERATOR_KEYS')
      expect(hasOperatorKeys, component).to.equal(component === 'api')
    }
  })

  it('runs the relay where it is enabled, with its own secrets and settings alone', () => {
    expect(render(REQUIRED).text).to.not.include('posthorn-relay')
    const pod = podOf('relay', EVERYTHING)
    expect(pod.containers[0]!.args).to.deep.equal(['relay', '--api', 'http://hooks-posthorn:80'])
    expect(pod.containers[0]!.readinessProbe?.httpGet).to.deep.equal({ path: '/readyz', port: 'metrics' })
    expect(envOf(pod)).to.deep.equal({
      RELAY_DATABASE_URL_FILE: '/run/secrets/posthorn/RELAY_DATABASE_URL',
      RELAY_OPERATOR_KEY_FILE: '/run/secrets/posthorn/RELAY_OPERATOR_KEY',
      RELAY_KEEP_HOURS: '48',
      SHUTDOWN_GRACE_MS: '60000',
      METRICS_HOST: '0.0.0.0',
      METRICS_PORT: '9464',
    })
    expect(envOf(podOf('worker', EVERYTHING))).to.not.have.property('RELAY_DATABASE_URL_FILE')
    const { egress } = find(EVERYTHING, 'NetworkPolicy', 'hooks-posthorn-relay-egress').spec
    expect(egress.map(({ ports }) => ports.map(({ port }) => port))).to.deep.equal([[5432], [3000]])
    const withoutKeys = { ...REQUIRED, relay: { enabled: true } }
    expect(refusal(withoutKeys)).to.include('is required with relay.enabled')
  })

  it('gives a pod longer to stop than the process takes', () => {
    expect(podOf('worker', REQUIRED).terminationGracePeriodSeconds).to.equal(35)
    expect(podOf('worker', EVERYTHING).terminationGracePeriodSeconds).to.equal(75)
  })

  it('writes numbers as they are', () => {
    expect(envOf(podOf('worker', EVERYTHING))).to.include({ PUBLISH_BACKLOG_LIMIT: '12000000' })
  })

  it('takes what YAML reads as a boolean for what it was written as, and refuses names that it reads as numbers', () => {
    const settings = { ...REQUIRED.settings, MEMBER_API_KEYS: false }
    expect(envOf(podOf('api', { ...REQUIRED, settings }))).to.include({ MEMBER_API_KEYS: 'off' })
    for (const [name, value] of [
      ['TEMPORAL_WORKER_BUILD_ID', 1.1],
      ['TEMPORAL_WORKER_BUILD_ID', 2],
      ['BRAND_NAME', false],
      ['SMTP_PORT', 46.5],
    ] as const)
      expect(refusal({ ...REQUIRED, settings: { ...REQUIRED.settings, [name]: value } })).to.include(name)
    expect(refusal({ ...REQUIRED, image: { tag: 1.1 } })).to.include('tag')
  })

  it('lets only workers out to public addresses, allowed ranges and the mail server', () => {
    const blocksOf = (policy: string): unknown[] =>
      find(EVERYTHING, 'NetworkPolicy', policy).spec.egress.map(({ to, ports }) => [
        to.flatMap(({ ipBlock }) => ipBlock?.cidr ?? []),
        ports.map(({ port }) => port),
      ])
    expect(blocksOf('hooks-posthorn-egress')).to.deep.equal([
      [[], [53, 53]],
      [['10.0.5.0/24'], [5432]],
      [[], [7233]],
    ])
    const open = ['0.0.0.0/0', '2000::/3']
    expect(blocksOf('hooks-posthorn-worker-egress')).to.deep.equal([
      [
        [...open, '10.1.0.0/16', '10.2.0.0/16'],
        [443, 1024, 80],
      ],
      [open, [465]],
    ])
  })

  it('lets named peers in to the API and to the metrics; without names everybody to the API, and nobody else', () => {
    const rulesOf = (policy: string, values: object): unknown[] =>
      find(values, 'NetworkPolicy', policy).spec.ingress.map(({ from, ports }) => [
        from?.map(({ ipBlock }) => ipBlock?.cidr),
        ports.map(({ port }) => port),
      ])
    expect(rulesOf('hooks-posthorn-ingress', REQUIRED)).to.deep.equal([])
    expect(rulesOf('hooks-posthorn-api-ingress', REQUIRED)).to.deep.equal([[undefined, [3000]]])
    expect(rulesOf('hooks-posthorn-ingress', EVERYTHING)).to.deep.equal([[['10.0.8.0/24'], [9464]]])
    // And the pods of the relay.
    expect(rulesOf('hooks-posthorn-api-ingress', EVERYTHING)).to.deep.equal([
      [['10.0.7.0/24', undefined], [3000]],
    ])
    const unreachable = { ...REQUIRED, serviceMonitor: { enabled: true } }
    expect(refusal(unreachable)).to.include('networkPolicy.metrics.from is required')
  })

  it('limits the memory of every container', () => {
    for (const component of ['api', 'worker', 'migrate'] as const)
      expect(podOf(component, REQUIRED).containers[0]!.resources.limits?.memory, component).to.match(
        /^\d+[MG]i$/,
      )
  })

  it('leaves the number of workers to the autoscaler where that is on', () => {
    expect(find(REQUIRED, 'Deployment', 'hooks-posthorn-worker').spec.replicas).to.equal(2)
    expect(find(EVERYTHING, 'Deployment', 'hooks-posthorn-worker').spec.replicas).to.equal(undefined)
    const { spec } = find(EVERYTHING, 'HorizontalPodAutoscaler', 'hooks-posthorn-worker')
    expect(spec.metrics).to.have.nested.property('[0].resource.name', 'cpu')
    const { metric } = (spec.metrics[1] as { external: { metric: object } }).external
    expect(metric, 'of no delivery that waits for its endpoint').to.deep.equal({
      name: 'posthorn_oldest_pending_age_seconds',
      selector: { matchLabels: { webhook: 'idle' } },
    })
  })

  it('refuses values that miss something or that it does not know', () => {
    expect(refusal({ ...REQUIRED, secrets: {} })).to.include('secrets.existingSecret is required')
    expect(refusal({ ...REQUIRED, settings: {} })).to.include('settings.TEMPORAL_ADDRESS is required')
    for (const name of ['postgresql', 'temporal']) {
      const networkPolicy = { ...REQUIRED.networkPolicy, [name]: { to: [] } }
      expect(refusal({ ...REQUIRED, networkPolicy })).to.include(`networkPolicy.${name}.to is required`)
    }
    const settings = { ...REQUIRED.settings, TEMPORAL_ADRESS: 'x' }
    expect(refusal({ ...REQUIRED, settings })).to.include("invalid propertyName 'TEMPORAL_ADRESS'")
  })
})
