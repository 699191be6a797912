/**
 * Tools as a handshake client may see them. The stateless revision lets `outputSchema` describe any value; before it the
 * root had to be an object (2025-06-18, Tools, "Output Schema"), and clients refuse a whole list over one that is not. Pure.
 */

/** The items with every `outputSchema` that is not an object's left out; the same array when there is none. */
export function legacyTools(items: readonly unknown[]): readonly unknown[] {
  return items.some(hasForeignSchema) ? items.map(withoutForeignSchema) : items;
}

function hasForeignSchema(item: unknown): item is Record<string, unknown> {
  if (!isRecord(item) || !Object.hasOwn(item, "outputSchema")) return false;
  const { outputSchema } = item;
  return !isRecord(outputSchema) || outputSchema["type"] !== "object";
}

function withoutForeignSchema(item: unknown): unknown {
  if (!hasForeignSchema(item)) return item;
  const { outputSchema: _foreign, ...rest } = item;
  return rest;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
