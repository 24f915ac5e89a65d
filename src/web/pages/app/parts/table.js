import { html, nothing, repeat } from '../lib/html.js'

/** @import { Template } from '../types.d.ts' */

/**
 * A column. `label`: names the cell where a narrow window shows no heads; `tooltip`: of the cell.
 * @template T
 * @typedef {{
 *   head: Template, className?: string, label?: string, cell: (row: T) => Template, tooltip?: (row: T) => string,
 * }} Column
 */

/**
 * A table. The roles stay where a narrow window lays its rows out as cards.
 * @template {{ id: string }} T
 * @param {{
 *   caption: string, columns: readonly Column<T>[], rows: readonly T[], className?: string, rowClass?: (row: T) => string,
 * }} options
 * @returns {Template}
 */
export function renderTable({ caption, columns, rows, className = 'events-table', rowClass }) {
  return html`<table class=${className} role="table">
    <caption class="unseen">
      ${caption}
    </caption>
    <thead role="rowgroup">
      <tr role="row">
        ${columns.map((column) => html`<th role="columnheader" scope="col" class=${column.className ?? nothing}>${column.head}</th>`)}
      </tr>
    </thead>
    <tbody role="rowgroup">
      ${repeat(
        rows,
        ({ id }) => id,
        (row) =>
          html`<tr role="row" class=${rowClass?.(row) ?? nothing}>
            ${columns.map((column) => renderCell(column, row))}
          </tr>`,
      )}
    </tbody>
  </table>`
}

/**
 * @template T
 * @param {Column<T>} column
 * @param {T} row
 */
function renderCell({ className, label, tooltip, cell }, row) {
  const title = tooltip?.(row) ?? nothing
  return html`<td role="cell" class=${className ?? nothing} data-label=${label ?? nothing} title=${title}>
    ${cell(row)}
  </td>`
}

/** A head that only screen readers need. */
export const ACTION = html`<span class="unseen">Action</span>`
