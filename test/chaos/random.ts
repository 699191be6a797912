/** Chance that can be repeated: the same seed gives the same sequence. */

export interface Random {
  /** From 0 to below 1. */
  next(): number;
  /** A whole number from `min` to `max`, both included. */
  int(min: number, max: number): number;
  pick<T>(of: readonly [T, ...T[]]): T;
  /** A sequence of its own, so that what one part draws does not shift another's. */
  fork(): Random;
}

/** mulberry32 over a 32-bit seed. */
export function seeded(seed: number): Random {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
  const int = (min: number, max: number): number => min + Math.floor(next() * (max - min + 1));
  return { next, int, pick: (of) => of[int(0, of.length - 1)] ?? of[0], fork: () => seeded(int(0, 0xffff_ffff)) };
}
