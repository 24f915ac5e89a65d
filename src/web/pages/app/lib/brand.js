/** The name and the logo of the service, as the operator chose them: the document has both. */
export const BRAND = {
  name: document.querySelector('meta[name="application-name"]')?.getAttribute('content') ?? '',
  logo: document.querySelector('link[rel="icon"]')?.getAttribute('href') ?? '',
}
