import { execFileSync } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { bundleWorkflowCode } from '@temporalio/worker'

/** `npm run build`: compiles to dist/ and bundles the workflows once, so that a worker starts without a bundler. */
const root = fileURLToPath(new URL('../../', import.meta.url))

rmSync(`${root}dist`, { recursive: true, force: true })
execFileSync(
  process.execPath,
  [`${root}node_modules/typescript/bin/tsc`, '-p', `${root}tsconfig.build.json`],
  { stdio: 'inherit' },
)
const { code } = await bundleWorkflowCode({ workflowsPath: `${root}workflows/index.ts` })
writeFileSync(`${root}dist/workflow-bundle.js`, code)
