import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const FOLDER = fileURLToPath(new URL('../../docs/verify/', import.meta.url))

/** The programs of docs/verify, which tests run, by the name of their language. */
const FILES = { 'Node.js': 'node.mjs', Python: 'python.py', Go: 'go/main.go', Java: 'Verify.java' }

/** Renders the programs as a constant of the pages' scripts. */
export function verifySamples(): string {
  const samples = Object.entries(FILES).map(([language, file]) => {
    const program = readFileSync(`${FOLDER}${file}`, 'utf8').trimEnd()
    return `  {\n    language: '${language}',\n    program: \`${program.replace(/[\\`]|\$\{/g, '\\$&')}\`,\n  },\n`
  })
  return `export const VERIFY_SAMPLES = [\n${samples.join('')}]\n`
}
