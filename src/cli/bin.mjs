#!/usr/bin/env node
// The `posthorn` command: the compiled code where there is a build, the sources through tsx in a working copy.
import { existsSync } from 'node:fs'

const compiled = new URL('../../dist/src/cli/posthorn.js', import.meta.url)

if (existsSync(compiled)) {
  await import(compiled.href)
} else {
  const { register } = await import('tsx/esm/api')
  register()
  await import(new URL('./posthorn.ts', import.meta.url).href)
}
