import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  publishFolder,
  findOnPath,
  foundInCache,
  namedByEnvironment,
  provision,
  type Way,
  downloadedBySdk,
  sdkDownloadPath,
} from '../../../src/dev/provision.ts'
import { runTool, withProgress } from '../../../src/dev/guarded-process.ts'
import type { ProvideOptions } from '../../../src/dev/temporal-dev-server.ts'

const SERVER_VERSION = '1.38.0'
const OLDEST_JAVA = 17
const QUICK_TIMEOUT_MS = 20_000
const MAVEN_TIMEOUT_MS = 600_000
const EXECUTABLE = 'temporal-test-server'

/**
 * Path of the time-skipping test server, for `createTimeSkipping`: the one set by `TEMPORAL_TEST_SERVER`, one
 * from the cache, the SDK's download, or one assembled with Maven.
 *
 * @throws Error naming every way tried and every way out
 */
export async function provideTimeSkippingServer(options: ProvideOptions): Promise<string> {
  const { env, cacheDir, print, run = runTool } = options
  const cached = [join(serverFolder(cacheDir), EXECUTABLE), sdkDownloadPath('test-server', cacheDir)]
  return provision({
    what: 'the time-skipping test server',
    ways: [
      namedByEnvironment('TEMPORAL_TEST_SERVER', env),
      foundInCache(cached),
      downloadedBySdk('test-server', { cacheDir, print, run }),
      assembledWithMaven({ env, cacheDir, print, run }),
    ],
    waysOut: [
      'set TEMPORAL_TEST_SERVER=/path/to/temporal-test-server',
      `install Maven and a JDK ${OLDEST_JAVA} or newer; it is then assembled here`,
    ],
  })
}

function assembledWithMaven({ env, cacheDir, print, run }: Required<ProvideOptions>): Way {
  return {
    name: `Maven (temporal-test-server ${SERVER_VERSION})`,
    attempt: async () => {
      const java = findOnPath('java', env)
      const maven = findOnPath('mvn', env)
      if (java === null) return { why: 'no `java` on PATH' }
      if (maven === null) return { why: 'no `mvn` on PATH' }
      const version = await run({ command: java, args: ['-version'], env, timeoutMs: QUICK_TIMEOUT_MS })
      if (isTooOld(version)) {
        return { why: `needs Java ${OLDEST_JAVA} or newer, found ${version.split('\n')[0] ?? ''}` }
      }
      print(`Getting the time-skipping test server ${SERVER_VERSION} with Maven (once, about 15 seconds) …`)
      const path = await publishFolder(serverFolder(cacheDir), EXECUTABLE, async (draft) => {
        await copyJars(maven, join(draft, 'lib'), { env, print, run })
        const wrapper = join(draft, EXECUTABLE)
        writeFileSync(wrapper, wrapperScript)
        chmodSync(wrapper, 0o755)
      })
      return { path }
    },
  }
}

async function copyJars(
  maven: string,
  jarFolder: string,
  { env, print, run }: Omit<Required<ProvideOptions>, 'cacheDir'>,
): Promise<void> {
  const project = mkdtempSync(join(tmpdir(), 'posthorn-maven-'))
  try {
    writeFileSync(join(project, 'pom.xml'), projectFile)
    let downloaded = 0
    const onLine = (line: string): void => {
      if (line.includes('Downloaded from')) downloaded += 1
    }
    const describe = (seconds: number): string =>
      `Getting the time-skipping test server: ${downloaded} files after ${seconds} s …`
    const args = ['--batch-mode', 'dependency:copy-dependencies', `-DoutputDirectory=${jarFolder}`]
    const tool = { command: maven, args, cwd: project, env, timeoutMs: MAVEN_TIMEOUT_MS, onLine }
    await withProgress(print, describe, () => run(tool))
  } finally {
    rmSync(project, { recursive: true, force: true })
  }
}

const projectFile = `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>posthorn</groupId>
  <artifactId>test-server</artifactId>
  <version>1</version>
  <dependencies>
    <dependency>
      <groupId>io.temporal</groupId>
      <artifactId>temporal-test-server</artifactId>
      <version>${SERVER_VERSION}</version>
    </dependency>
  </dependencies>
</project>
`

// `exec`, since stopping the server ends its direct child only. The flags buy a start of 0.7 s.
const wrapperScript = `#!/bin/sh
LIB="$(dirname "$0")/lib"
exec java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto -cp "$LIB/*" io.temporal.testserver.TestServer "$@"
`

function serverFolder(cacheDir: string): string {
  return join(cacheDir, `temporal-test-server-${SERVER_VERSION}`)
}

// `openjdk version "17.0.15" …`; before Java 9 it was `"1.8.0_292"`, which reads as 1 here: too old all the same.
function isTooOld(javaVersion: string): boolean {
  const major = /version "(\d+)/.exec(javaVersion)?.[1]
  return major !== undefined && Number(major) < OLDEST_JAVA
}
