import { html } from '../lib/html.js'
import { plural } from '../lib/times.js'
import { createTask } from './dialog.js'
import { inWords } from './problem.js'

/** @import { App, Template } from '../types.d.ts' */

const MORE = '{"nextCursor":'

/**
 * A button that downloads the list with the filter in force, a JSON text in each line.
 * @param {App} app
 * @param {'delivery' | 'event'} noun
 * @param {(query: Record<string, string>) => Promise<string>} load
 */
export function createExportButton(app, noun, load) {
  const task = createTask(app, inWords, (words) => app.showMessage(`The export failed. ${words}`))

  /** @param {Record<string, string>} query */
  const download = async (query) => {
    const text = await load(query)
    const time = new Date().toISOString().slice(0, 19).replaceAll(':', '-')
    save(text, `${plural(2, noun).slice(2)}-${time}.ndjson`)
    const lines = text.split('\n').slice(0, -1)
    const hasMore = lines.at(-1)?.startsWith(MORE) === true
    const rows = plural(hasMore ? lines.length - 1 : lines.length, noun)
    app.showMessage(
      hasMore
        ? `The newest ${rows} are exported. A filter by time leads to the others.`
        : `${rows} exported.`,
    )
  }
  /**
   * @param {Record<string, string>} query
   * @returns {Template}
   */
  return (query) =>
    html`<div class="buttons">
      <button
        type="button"
        class="quiet"
        ?disabled=${task.isBusy}
        @click=${() => task.run(() => download(query))}
      >
        ${task.isBusy ? 'Exporting …' : 'Export as NDJSON'}
      </button>
    </div>`
}

/**
 * @param {string} text
 * @param {string} name
 */
function save(text, name) {
  const url = URL.createObjectURL(new Blob([text], { type: 'application/x-ndjson' }))
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  // The browser has begun to read it.
  setTimeout(() => URL.revokeObjectURL(url), 60_000)
}
