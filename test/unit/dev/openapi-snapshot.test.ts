import { expect } from 'chai'
import { builtInCatalogue } from '../../../src/catalogue/built-in-catalogue.ts'
import { changedLines, openApiSnapshot } from '../../../src/dev/openapi-snapshot.ts'
import { openApiDocument } from '../../../src/http/openapi.ts'
import { routes } from '../../../src/http/routes/index.ts'

describe('the snapshot of the OpenAPI document', () => {
  const document = JSON.stringify(openApiDocument(routes, builtInCatalogue))
  const before = openApiSnapshot(JSON.parse(document) as object)
  const after = (changed: string): string[] =>
    changedLines(before, openApiSnapshot(JSON.parse(changed) as object))

  it('names no line where nothing changed', () => {
    expect(after(document)).to.deep.equal([])
  })

  it('names an operation that is renamed', () => {
    expect(
      after(document.replace('"operationId":"listWebhooks"', '"operationId":"webhooks"')).map(method),
    ).to.deep.equal([
      '- GET /api/orgs/{orgId}/webhooks listWebhooks',
      '+ GET /api/orgs/{orgId}/webhooks webhooks',
    ])
  })

  it('names a status that is no longer documented', () => {
    const changed = JSON.parse(document) as { paths: Record<string, Record<string, { responses: object }>> }
    Reflect.deleteProperty(changed.paths['/healthz']!['get']!.responses, '200')
    const [was, is] = after(JSON.stringify(changed))
    expect(was).to.include('- GET /healthz').and.include('200 Health')
    expect(is).to.include('+ GET /healthz').and.not.include('200')
  })

  it('names a schema whose fields changed, and one that is gone', () => {
    const changed = JSON.parse(document) as {
      components: { schemas: Record<string, { required: string[] }> }
    }
    const { schemas } = changed.components
    schemas['Discarded']!.required = []
    Reflect.deleteProperty(schemas, 'Envelope')
    expect(after(JSON.stringify(changed))).to.have.members([
      '- Discarded: discarded',
      '- Envelope: event data timestamp traceId spanId? triggeredBy',
      '+ Discarded: discarded?',
    ])
  })
})

/** A line without parameters and answers. */
function method(line: string): string {
  return line.split(' (')[0]!
}
