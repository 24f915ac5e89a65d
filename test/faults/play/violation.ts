/** A promise that a play saw broken. */
export type Violation = { rule: string; deliveryId: string | null; detail: string }
