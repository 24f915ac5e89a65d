// The program of the threads where the sources run: a thread does not have tsx from its process.
import { register } from 'tsx/esm/api'

register()
await import('./payload-thread.ts')
