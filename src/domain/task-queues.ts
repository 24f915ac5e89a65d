/**
 * The task queue for attempts that may take long: retries, and all attempts of webhooks that are slow or failing. Its
 * slots are its own, so that they cannot take those of healthy webhooks' first attempts.
 */
export function apartQueue(taskQueue: string): string {
  return `${taskQueue}-apart`
}
