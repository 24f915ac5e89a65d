import { parse } from 'yaml'
import { readDocument } from '../documents/documents.ts'

/** One query of the dashboard or the rules. `where`: whose it is. */
export type Query = { where: string; expr: string }

export type AlertRule = {
  alert: string
  expr: string
  for?: string
  labels: { severity: string }
  annotations: { summary: string; description: string; runbook: string }
}

type Panel = {
  id: number
  type: string
  title: string
  datasource?: { type: string; uid: string }
  targets?: { expr: string; datasource: { type: string; uid: string } }[]
  gridPos: { x: number; y: number; w: number; h: number }
}

export type Dashboard = {
  title: string
  uid: string
  schemaVersion: number
  templating: { list: { name: string; type: string; query: unknown }[] }
  panels: Panel[]
}

export function readDashboard(): Dashboard {
  return JSON.parse(readDocument('docs/metrics/grafana-dashboard.json')) as Dashboard
}

export function readAlertRules(): AlertRule[] {
  const { groups } = parse(readDocument('docs/metrics/alert-rules.yml')) as {
    groups: { rules: AlertRule[] }[]
  }
  return groups.flatMap(({ rules }) => rules)
}

/** Every query of both files. */
export function readQueries(): Query[] {
  const panels = readDashboard().panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ expr }) => ({ where: `panel ${title}`, expr })),
  )
  return [...panels, ...readAlertRules().map(({ alert, expr }) => ({ where: alert, expr }))]
}

/** A metric as a query names it, with the labels that it asks for by `=` and `=~`. */
export type Selector = { name: string; labels: [label: string, pattern: RegExp][] }

/** What is left to a query besides: functions, labels of `by`, and words of the language. */
export function selectorsOf(expr: string): Selector[] {
  return [...expr.matchAll(/\b((?:posthorn|temporal|process|nodejs)_\w+)(?:\{([^}]*)\})?/g)].map(
    ([, name = '', matchers = '']) => ({
      name,
      labels: [...matchers.matchAll(/(\w+)(=~|=)"([^"]*)"/g)].map(([, label = '', , value = '']) => [
        label,
        new RegExp(`^(?:${value})$`),
      ]),
    }),
  )
}

/** Labels that a query groups by; `le` is that of histograms. */
export function groupedBy(expr: string): string[] {
  return [...expr.matchAll(/\bby \(([^)]*)\)/g)]
    .flatMap(([, labels = '']) => labels.split(','))
    .map((label) => label.trim())
}
