import { fileURLToPath } from 'node:url'
import { stringify } from 'yaml'

/** The same file as in docker-compose.yml: eager activities and fairness are switched on there. */
const DYNAMIC_CONFIG = fileURLToPath(new URL('../../../temporal-config/dynamicconfig.yaml', import.meta.url))

const LOOPBACK = '127.0.0.1'
const SERVICES = ['frontend', 'history', 'matching', 'worker'] as const
/** Of each service to each of the two databases; the server's own defaults in its images. */
const CONNECTIONS = 20

type Ports = Record<(typeof SERVICES)[number], { grpc: number; membership: number }> & { http: number }

export type TemporalConfigOptions = {
  postgres: { port: number; password: string }
  databases: { main: string; visibility: string }
  shards: number
  ports: Ports
}

/** The static configuration of a Temporal server with all its services in one process, as YAML. */
export function temporalConfig({ postgres, databases, shards, ports }: TemporalConfigOptions): string {
  const store = (databaseName: string) => ({
    sql: {
      pluginName: 'postgres12_pgx',
      databaseName,
      connectAddr: `${LOOPBACK}:${postgres.port}`,
      connectProtocol: 'tcp',
      user: 'postgres',
      password: postgres.password,
      maxConns: CONNECTIONS,
      maxIdleConns: CONNECTIONS,
      maxConnLifetime: '1h',
    },
  })
  const frontend = `${LOOPBACK}:${ports.frontend.grpc}`
  const rpc = (service: (typeof SERVICES)[number]) => ({
    rpc: {
      grpcPort: ports[service].grpc,
      membershipPort: ports[service].membership,
      bindOnIP: LOOPBACK,
      ...(service === 'frontend' ? { httpPort: ports.http } : {}),
    },
  })
  return stringify({
    log: { stdout: true, level: 'warn' },
    persistence: {
      numHistoryShards: shards,
      defaultStore: 'default',
      visibilityStore: 'visibility',
      datastores: { default: store(databases.main), visibility: store(databases.visibility) },
    },
    global: { membership: { maxJoinDuration: '30s', broadcastAddress: LOOPBACK } },
    services: Object.fromEntries(SERVICES.map((service) => [service, rpc(service)])),
    clusterMetadata: {
      enableGlobalNamespace: false,
      failoverVersionIncrement: 10,
      masterClusterName: 'active',
      currentClusterName: 'active',
      clusterInformation: {
        active: { enabled: true, initialFailoverVersion: 1, rpcName: 'frontend', rpcAddress: frontend },
      },
    },
    dcRedirectionPolicy: { policy: 'noop' },
    publicClient: { hostPort: frontend },
    dynamicConfigClient: { filepath: DYNAMIC_CONFIG, pollInterval: '60s' },
  })
}
