import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { readBrand } from '../../../src/process/service-settings.ts'

describe('the logo of the brand', () => {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-brand-'))
  after(() => rmSync(folder, { recursive: true }))

  const read = (brandLogoFile: string) =>
    readBrand({ brandName: 'Zon', brandAccentColor: '', brandLogoFile }).logo
  const written = (content: string | Buffer): string => {
    const path = join(folder, 'logo')
    writeFileSync(path, content)
    return path
  }
  const PNG = Buffer.from('89504e470d0a1a0a00', 'hex')

  it('is that of Posthorn without a file', () => {
    expect(read('')).to.equal(null)
  })

  it('is SVG or PNG by its content, whatever its name', () => {
    expect(read(written(PNG))).to.deep.equal({ body: PNG, extension: 'png' })
    const prolog = '<?xml version="1.0"?>\n<!-- made by hand -->\n<!DOCTYPE svg>\n'
    for (const svg of ['<svg xmlns="http://www.w3.org/2000/svg"/>', `\uFEFF${prolog}<svg>\n</svg>`])
      expect(read(written(svg))).to.deep.equal({ body: Buffer.from(svg), extension: 'svg' })
  })

  it('is nothing else', () => {
    for (const content of ['', 'GIF89a', '<html><svg></svg></html>', 'svg', '<svgx>', 'x<svg>'])
      expect(() => read(written(content)), content).to.throw('BRAND_LOGO_FILE is neither SVG nor PNG')
  })

  it('is a file that can be read, of limited size', () => {
    expect(() => read(join(folder, 'missing'))).to.throw('BRAND_LOGO_FILE cannot be read (ENOENT)')
    expect(() => read(folder)).to.throw('BRAND_LOGO_FILE is not a file')
    const atMost = Buffer.concat([PNG, Buffer.alloc(256 * 1024 - PNG.length)])
    expect(read(written(atMost))?.body).to.have.length(256 * 1024)
    const larger = Buffer.concat([atMost, Buffer.alloc(1)])
    expect(() => read(written(larger))).to.throw('BRAND_LOGO_FILE is larger than 256 KiB')
  })
})
