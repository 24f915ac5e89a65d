/** Groups what belongs to deliveries by the delivery, in the order given. */
export function byDelivery<T extends { deliveryId: string }>(all: readonly T[]): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const one of all) {
    const group = groups.get(one.deliveryId)
    if (group === undefined) groups.set(one.deliveryId, [one])
    else group.push(one)
  }
  return groups
}
