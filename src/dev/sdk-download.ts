import { chmodSync, readdirSync, renameSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { publishFolder, type Way } from './provision.ts'
import { type RunTool, withProgress } from './guarded-process.ts'

/** The two servers that the SDK can download. */
export type SdkServer = 'cli' | 'test-server'

const downloader = fileURLToPath(new URL('./sdk-download.mjs', import.meta.url))
const { version: sdkVersion } = createRequire(import.meta.url)('@temporalio/testing/package.json') as {
  version: string
}

// For 60 MB over a slow connection. A closed network refuses within milliseconds.
const DOWNLOAD_TIMEOUT_MS = 300_000

const executableNames = { cli: 'temporal', 'test-server': 'temporal-test-server' }

/** Returns the path of the SDK's download; each version of the SDK has its own. */
export function sdkDownloadPath(server: SdkServer, cacheDir: string): string {
  return join(folderOf(server, cacheDir), executableNames[server])
}

/** The server that the SDK downloads by itself, fetched once and cached. */
export function downloadedBySdk(
  server: SdkServer,
  { cacheDir, print, run }: { cacheDir: string; print: (line: string) => void; run: RunTool },
): Way {
  const what = server === 'cli' ? 'the Temporal server' : 'the time-skipping test server'
  return {
    name: "the Temporal SDK's download",
    attempt: async () => {
      print(`Downloading ${what} (once, about half a minute) …`)
      const executable = executableNames[server]
      const path = await publishFolder(folderOf(server, cacheDir), executable, async (draft) => {
        const args = [downloader, server, draft]
        const describe = (seconds: number): string =>
          `Downloading ${what}: ${megabytesIn(draft)} MB after ${seconds} s …`
        await withProgress(print, describe, () =>
          run({ command: process.execPath, args, timeoutMs: DOWNLOAD_TIMEOUT_MS }),
        )
        // The SDK gives the file a name with its own version in it.
        const [downloaded] = readdirSync(draft)
        if (downloaded === undefined) throw new Error('it left no file')
        renameSync(join(draft, downloaded), join(draft, executable))
        chmodSync(join(draft, executable), 0o755)
      })
      return { path }
    },
  }
}

function folderOf(server: SdkServer, cacheDir: string): string {
  return join(cacheDir, `temporal-${server}-sdk-${sdkVersion}`)
}

function megabytesIn(folder: string): number {
  const sizes = readdirSync(folder).map((file) => {
    // The file is renamed when it is complete: it may be gone by now.
    return statSync(join(folder, file), { throwIfNoEntry: false })?.size ?? 0
  })
  return Math.round(sizes.reduce((sum, bytes) => sum + bytes, 0) / 1_000_000)
}
