// Runs before `npm start` and `npm test`, on a clone that has nothing installed yet: Node built-ins only.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../..', import.meta.url))
const markerFile = join(root, 'node_modules', '.posthorn-lock')
const MINIMUM_NODE = [20, 19]

function isNodeTooOld() {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  return major < MINIMUM_NODE[0] || (major === MINIMUM_NODE[0] && minor < MINIMUM_NODE[1])
}

function hashLockFile() {
  return createHash('sha256')
    .update(readFileSync(join(root, 'package-lock.json')))
    .digest('hex')
}

function readText(file) {
  return existsSync(file) ? readFileSync(file, 'utf8').trim() : ''
}

// npm notes at the end of every complete installation what it installed. Reading it spares those who ran
// `npm install` by hand a second installation; an installation that was cut short has no such note.
function matchesWhatNpmInstalled() {
  const note = readText(join(root, 'node_modules', '.package-lock.json'))
  if (note === '') return false
  const installed = JSON.parse(note).packages
  const wanted = Object.entries(JSON.parse(readText(join(root, 'package-lock.json'))).packages)
  return wanted.every(([path, entry]) => {
    // Optional packages are those of other platforms; "" is this project.
    if (path === '' || entry.optional || entry.devOptional || entry.peer) return true
    return installed[path]?.version === entry.version
  })
}

function installPackages() {
  // npm passes its own path to its children, which also works where `npm` itself is not on PATH.
  const npmCli = process.env.npm_execpath ?? ''
  const npm = basename(npmCli) === 'npm-cli.js' ? [process.execPath, npmCli] : ['npm']
  // --include=dev: also under NODE_ENV=production, since what runs here is the development set-up.
  const args = [...npm.slice(1), 'ci', '--include=dev', '--no-audit', '--no-fund']
  return spawnSync(npm[0], args, { cwd: root, stdio: 'inherit', shell: process.platform === 'win32' })
}

function fail(message) {
  console.error(message)
  process.exitCode = 1
}

function main() {
  if (isNodeTooOld()) {
    fail(`Posthorn needs Node.js ${MINIMUM_NODE.join('.')} or newer; this is ${process.versions.node}.`)
    return
  }
  const wantedHash = hashLockFile()
  if (readText(markerFile) === wantedHash) return
  if (!matchesWhatNpmInstalled()) {
    console.log(
      'Installing the packages of package-lock.json with `npm ci` (about a minute the first time) …',
    )
    const { status, signal, error } = installPackages()
    if (status !== 0) {
      const why = error?.message ?? (signal ? `it was ended by ${signal}` : `it ended with code ${status}`)
      fail(`\`npm ci\` failed: ${why}. Its own message is above; run \`npm ci\` again once that is repaired.`)
      return
    }
  }
  writeFileSync(markerFile, `${wantedHash}\n`)
}

main()
