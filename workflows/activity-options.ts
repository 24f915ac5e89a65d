/**
 * Options of all activities. They throw only for faults of ours, and are retried without an end: a receiver's failure is
 * an outcome. The heartbeat detects a lost worker within ten seconds; the long timeout is for a database that is
 * unavailable.
 */
export const ACTIVITY_OPTIONS = {
  startToCloseTimeout: '1 hour',
  heartbeatTimeout: '10 seconds',
  retry: { initialInterval: '1 second', backoffCoefficient: 2, maximumInterval: '1 minute' },
} as const
