import { execFileSync } from 'node:child_process'
import { cpSync, rmSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { bundleWorkflowCode } from '@temporalio/worker'

/** `npm run build`: compiles to dist/, puts the pages beside it and bundles the workflows once, so that a worker starts without a bundler. */
const root = fileURLToPath(new URL('../../', import.meta.url))

rmSync(`${root}dist`, { recursive: true, force: true })
execFileSync(
  process.execPath,
  [`${root}node_modules/typescript/bin/tsc`, '-p', `${root}tsconfig.build.json`],
  { stdio: 'inherit' },
)
// What browsers get is served as it is.
cpSync(`${root}src/web/pages`, `${root}dist/src/web/pages`, { recursive: true })
const { code } = await bundleWorkflowCode({ workflowsPath: `${root}workflows/index.ts` })
writeFileSync(`${root}dist/workflow-bundle.js`, code)
