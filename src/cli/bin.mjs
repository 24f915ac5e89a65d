#!/usr/bin/env node
// The `posthorn` command. Runs the compiled code where there is a build, and the sources through tsx otherwise.
// Refuses to run a build that is older than the sources next to it. A container image has no sources.
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const compiled = new URL('../../dist/src/cli/posthorn.js', import.meta.url)
const source = new URL('./posthorn.ts', import.meta.url)
const hasBuild = existsSync(compiled)
const changed = hasBuild && existsSync(source) ? findChangedSource() : undefined

if (changed !== undefined) {
  process.stderr.write(
    `${changed} changed after the build in dist/: run \`npm run build\`, or delete dist/ to run the sources.\n`,
  )
  process.exitCode = 1
} else if (hasBuild) {
  await import(compiled.href)
} else if (!isInstalled()) {
  process.exitCode = 1
} else {
  const { register } = await import('tsx/esm/api')
  // Without it tsx takes the options of the current folder, which may be anywhere.
  register({ tsconfig: fileURLToPath(new URL('../../tsconfig.json', import.meta.url)) })
  await import(source.href)
}

/** Installs the packages of a clone that has none, as `npm start` does; standard output stays the command's. */
function isInstalled() {
  if (existsSync(new URL('../../node_modules', import.meta.url))) return true
  const install = fileURLToPath(new URL('../dev/install.mjs', import.meta.url))
  return spawnSync(process.execPath, [install], { stdio: ['ignore', 2, 2] }).status === 0
}

/** Returns a file that changed after the build, relative to the root; undefined where none did. */
function findChangedSource() {
  const root = fileURLToPath(new URL('../../', import.meta.url))
  const builtMs = statSync(compiled).mtimeMs
  const files = ['src', 'workflows', 'activities'].flatMap((folder) =>
    readdirSync(`${root}${folder}`, { recursive: true }).map((path) => `${folder}/${path}`),
  )
  return files.find((path) => {
    const stats = statSync(`${root}${path}`)
    return stats.isFile() && stats.mtimeMs > builtMs
  })
}
