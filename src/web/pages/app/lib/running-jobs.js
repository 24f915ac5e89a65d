const PREFIX = 'posthorn.job.'

/**
 * Remembers the retry job of an action for as long as this tab is open, so that its progress can be shown again.
 * @param {string} action
 * @param {string} jobId
 */
export function rememberJob(action, jobId) {
  sessionStorage.setItem(PREFIX + action, jobId)
}

/**
 * @param {string} action
 * @returns {string | null}
 */
export function recallJob(action) {
  return sessionStorage.getItem(PREFIX + action)
}

/** @param {string} action */
export function forgetJob(action) {
  sessionStorage.removeItem(PREFIX + action)
}

/**
 * The jobs that are remembered under `ACTION:…`.
 * @param {string} action
 * @returns {string[]} their ids
 */
export function jobsOf(action) {
  const prefix = `${PREFIX}${action}:`
  return Object.keys(sessionStorage)
    .filter((key) => key.startsWith(prefix))
    .map((key) => key.slice(prefix.length))
    .sort()
}
