/** How a product is benched from outside. A file given with `--adapter` exports one as `adapter`; see the README. */
export type Adapter = {
  name: string
  /** The header, in lower case, by which a POST to a webhook names its delivery. */
  idHeader: string
  /** Makes a customer with one webhook at `hookUrl`, by the API at `url`, which has no slash at its end. */
  createCustomer(url: string, hookUrl: string): Promise<Customer>
}

type Customer = {
  /** The request that publishes an event with a payload of about so many bytes. */
  request(bodyBytes: number): PublishRequest
  /** Returns the ids that `idHeader` will have. Throws an Error where the event was not accepted. */
  readIds(answer: Answer): string[]
  /** Removes what `createCustomer` made. */
  remove(): Promise<unknown>
}

/** A POST. Host and Content-Length are added. */
export type PublishRequest = { path: string; headers: Record<string, string>; body: string }

export type Answer = { status: number; body: string }
