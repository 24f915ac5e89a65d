import { plain, secretSetting, setting, webAddress } from './parsers.ts'

/** How Temporal is reached, in the order of `.env.example`. */
export const TEMPORAL_SETTINGS = {
  temporalAddress: setting('TEMPORAL_ADDRESS', 'host:port of the Temporal frontend', '127.0.0.1:7233', plain),
  temporalNamespace: setting('TEMPORAL_NAMESPACE', 'Temporal namespace', 'default', plain),
  temporalTaskQueue: setting('TEMPORAL_TASK_QUEUE', 'task queue of the workers', 'posthorn', plain),
  temporalTlsCaFile: setting(
    'TEMPORAL_TLS_CA_FILE',
    "PEM file with the authority that signed Temporal's certificate; empty for the public ones",
    '',
    plain,
  ),
  temporalTlsCertFile: setting(
    'TEMPORAL_TLS_CERT_FILE',
    'PEM file with the certificate that Posthorn shows Temporal, when it requires one',
    '',
    plain,
  ),
  temporalTlsKeyFile: setting(
    'TEMPORAL_TLS_KEY_FILE',
    'PEM file with the private key of that certificate',
    '',
    plain,
  ),
  temporalApiKey: secretSetting('TEMPORAL_API_KEY', 'API key for Temporal, when it requires one', '', plain),
  temporalDeploymentName: setting(
    'TEMPORAL_DEPLOYMENT_NAME',
    'name of the worker deployment, for workers with a build id',
    'posthorn',
    plain,
  ),
  temporalBuildId: setting(
    'TEMPORAL_WORKER_BUILD_ID',
    'build id of this worker; empty for workers without versions',
    '',
    plain,
  ),
  temporalUiUrl: setting('TEMPORAL_UI_URL', 'address of the Temporal UI for operators', '', webAddress),
}
