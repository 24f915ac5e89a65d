// Lets the Temporal SDK download a server into a folder: `node sdk-download.mjs cli|test-server FOLDER`.
// A process of its own, because the SDK can only do so by starting a server, which installs its one runtime
// per process before ours can be configured.
import { TestWorkflowEnvironment } from '@temporalio/testing'

const [server, downloadDir] = process.argv.slice(2)
const options = { server: { executable: { type: 'cached-download', downloadDir } } }

try {
  const environment =
    server === 'cli'
      ? await TestWorkflowEnvironment.createLocal(options)
      : await TestWorkflowEnvironment.createTimeSkipping(options)
  await environment.teardown()
} catch (error) {
  console.error(error.message)
  process.exit(1)
}
process.exit(0)
