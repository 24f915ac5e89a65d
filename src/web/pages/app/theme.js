// Runs before the first paint, which waits for it: no page appears in the other colours first.
import { followTheme } from './lib/theme.js'

followTheme()
