import { expect } from 'chai'
import { DEFECTS, patched } from '../../planted/defects.ts'

describe('the defects that are planted for the random play', () => {
  it('change the product as it is', () => {
    for (const { what, patches } of DEFECTS)
      for (const patch of patches) expect(() => patched(patch), what).not.to.throw()
  })
})
