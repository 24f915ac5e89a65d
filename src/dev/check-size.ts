import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'

/** `npm run check:size`: prints how large the repository is. It never fails. */
const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const CODE = new Set(['.ts', '.js', '.mjs', '.cjs', '.sql'])
const SMALL_LINES = 30

const files = execFileSync('git', ['ls-files'], { cwd: ROOT, encoding: 'utf8' }).trim().split('\n')

/** Returns the lines that are neither blank nor only a comment. */
function codeLines(text: string): number {
  const lines = text.replaceAll(/^\s*\/\*[^]*?\*\/\s*$/gm, '').split('\n')
  return lines.filter((line) => line.trim() !== '' && !/^\s*(\/\/|--)/.test(line)).length
}

function measure(folders: readonly string[]): string {
  const chosen = files.filter(
    (file) => CODE.has(extname(file)) && folders.some((one) => file.startsWith(one)),
  )
  const texts = chosen.map((file) => readFileSync(`${ROOT}${file}`, 'utf8'))
  const lines = texts.reduce((sum, text) => sum + codeLines(text), 0)
  const small = texts.filter((text) => text.trimEnd().split('\n').length <= SMALL_LINES).length
  return `${lines} lines of code in ${chosen.length} files, ${small} of at most ${SMALL_LINES} lines`
}

const documents = files.filter((file) => extname(file) === '.md')
const bytes = documents.reduce((sum, file) => sum + readFileSync(`${ROOT}${file}`).length, 0)
process.stdout.write(
  `src, workflows, activities: ${measure(['src/', 'workflows/', 'activities/'])}\n` +
    `test: ${measure(['test/'])}\n` +
    `Markdown: ${Math.round(bytes / 1_000)} KB in ${documents.length} files\n`,
)
