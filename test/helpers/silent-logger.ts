import type { Logger } from '../../src/observability/logger.ts'

const nothing = (): void => undefined

export const silentLogger: Logger = { info: nothing, warn: nothing, error: nothing }
