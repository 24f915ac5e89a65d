import { createCatalogue, type Catalogue } from './catalogue.ts'
import { controllerPayloads } from './controller.ts'
import { customerPayloads } from './customer.ts'
import type { CatalogueDocument } from './document.ts'
import { enumeratedShape } from './enumerations.ts'
import { builtInKeys } from './event-keys.ts'
import { invoicePayloads } from './invoice.ts'
import { nfcTagPayloads } from './nfc-tag.ts'
import { organizationSettingsPayloads } from './organization-settings.ts'
import type { PayloadShape } from './payload-shape.ts'

const payloads = new Map<string, PayloadShape>(
  [
    customerPayloads,
    invoicePayloads,
    controllerPayloads,
    nfcTagPayloads,
    organizationSettingsPayloads,
  ].flatMap((family) => Object.entries(family)),
)

/** The event keys that Posthorn has where no document names others (spec 6.1, 6.3). */
const builtInDocument: CatalogueDocument = {
  eventKeys: builtInKeys.map((definition) => {
    const { key } = definition
    return { ...definition, ...(payloads.get(key) ?? enumeratedShape(key)) }
  }),
}

/** The catalogue of a process for which the operator configures no other. */
export const builtInCatalogue: Catalogue = createCatalogue(builtInDocument)
