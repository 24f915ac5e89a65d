import { expect } from 'chai'
import { readAlertRules, readDashboard, readQueries, selectorsOf } from '../../helpers/metrics/dashboards.ts'
import { headingsOf, readDocument } from '../../helpers/documents/documents.ts'

const DATA_SOURCE = { type: 'prometheus', uid: '${datasource}' }

describe('docs/metrics/grafana-dashboard.json', () => {
  const dashboard = readDashboard()

  it('asks for a data source on import, and for nothing else', () => {
    expect(dashboard.templating.list.find(({ name }) => name === 'datasource')).to.include({
      type: 'datasource',
      query: 'prometheus',
    })
    for (const { type, title, datasource, targets = [] } of dashboard.panels) {
      if (type === 'row') continue
      expect(datasource, title).to.deep.equal(DATA_SOURCE)
      expect(targets, title).to.not.be.empty
      for (const target of targets) expect(target.datasource, title).to.deep.equal(DATA_SOURCE)
    }
  })

  it('has an id for each panel, and no overlapping panels', () => {
    const { panels } = dashboard
    expect(new Set(panels.map(({ id }) => id)).size).to.equal(panels.length)
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, cell) => `${x + (cell % w)},${y + Math.floor(cell / w)}`),
    )
    expect(new Set(cells).size).to.equal(cells.length)
    for (const { gridPos, title } of panels) expect(gridPos.x + gridPos.w, title).to.be.at.most(24)
  })

  it('uses no variable that it does not define', () => {
    const defined = dashboard.templating.list.map(({ name }) => name)
    for (const { where, expr } of readQueries())
      for (const [, name = ''] of expr.matchAll(/\$\{?(\w+)\}?/g))
        expect([...defined, '__rate_interval'], where).to.include(name)
  })
})

describe('docs/metrics/alert-rules.yml', () => {
  const rules = readAlertRules()

  it('gives each alert a severity, a summary and what to do', () => {
    for (const { alert, expr, labels, annotations } of rules) {
      expect(alert).to.match(/^Posthorn[A-Z]\w+$/)
      expect(expr, alert).to.be.a('string').that.is.not.empty
      expect(['critical', 'warning'], alert).to.include(labels.severity)
      expect(annotations.summary, alert).to.be.a('string').that.is.not.empty
      expect(annotations.description, alert).to.match(/\.$/)
    }
    expect(new Set(rules.map(({ alert }) => alert)).size).to.equal(rules.length)
  })

  it('links each alert to a heading that says what to do, and has an alert for each of them', () => {
    const linked = rules.map(({ annotations }) => annotations.runbook.split('#'))
    for (const [file = '', heading = ''] of linked) {
      expect(file).to.equal('docs/troubleshooting.md')
      expect(headingsOf(readDocument(file))).to.include(heading)
    }
    const [, ours = ''] = /\n## Alerts\n(.*?)\n## /s.exec(readDocument('docs/troubleshooting.md')) ?? []
    expect(headingsOf(ours)).to.have.members([...new Set(linked.map(([, heading = '']) => heading))])
  })

  it('names settings and log lines that exist', () => {
    const texts = rules.flatMap(({ annotations }) => Object.values(annotations)).join('\n')
    const troubleshooting = readDocument('docs/troubleshooting.md')
    const settings = readDocument('.env.example')
    for (const [name] of texts.matchAll(/\b[A-Z]+_[A-Z_]+\b/g)) expect(settings).to.include(`${name}=`)
    for (const [name] of texts.matchAll(/\b(?:dispatcher|sweep|http|notification)\.[a-z_]+\b/g))
      expect(troubleshooting).to.include(`\`${name}\``)
  })
})

describe('the queries of dashboard and rules', () => {
  it('name at least one metric each', () => {
    for (const { where, expr } of readQueries()) expect(selectorsOf(expr), where).to.not.be.empty
  })

  it('have balanced brackets', () => {
    for (const { where, expr } of readQueries())
      for (const [opening, closing] of ['()', '{}', '[]'] as const)
        expect(expr.split(opening!).length, `${where}: ${expr}`).to.equal(expr.split(closing!).length)
  })
})
