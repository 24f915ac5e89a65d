import type { Logger } from '../../src/observability/logger.ts'

const nothing = (): void => undefined

export const silentLogger: Logger = { debug: nothing, info: nothing, warn: nothing, error: nothing }
