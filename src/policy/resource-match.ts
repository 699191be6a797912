/** Which updates of resources concern a subscription. Pure. */

/**
 * True when an update of `updated` concerns whoever subscribed to `subscribed`: the resource itself, or a part of it
 * (2025-11-25, Resources: the updated URI may be a sub-resource of the one that was subscribed to).
 */
export function concerns(subscribed: string, updated: string): boolean {
  if (!updated.startsWith(subscribed)) return false;
  if (updated.length === subscribed.length || subscribed.endsWith("/")) return true;
  return ["/", "?", "#"].includes(updated.charAt(subscribed.length));
}
