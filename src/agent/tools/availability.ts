/** Whether a built-in tool works on this machine, and what would make it. */

/** Ready to be used, or not with a reason and what to do. */
export type Ready<T> = { ok: true; use: T } | { ok: false; reason: string; advice: string };

export function ready<T>(use: T): Ready<T> {
  return { ok: true, use };
}

export function missing<T>(reason: string, advice: string): Ready<T> {
  return { ok: false, reason, advice };
}
