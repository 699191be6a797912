/**
 * Tokens whose signature this isolate has already checked, by the hash of the token. Bounded; the least recently used
 * one leaves first. An entry is only as good as its key and its expiry, which the reader checks on every use.
 */
export class VerifiedTokens<Claims> {
  readonly #entries = new Map<string, Claims>();
  readonly #limit: number;

  /** Remembers `limit` tokens at most. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** The claims of a token, by its hash; marks it as used. */
  get(hash: string): Claims | undefined {
    const claims = this.#entries.get(hash);
    if (claims === undefined) return undefined;
    this.#entries.delete(hash);
    this.#entries.set(hash, claims);
    return claims;
  }

  /** Remembers a verified token, and forgets the least recently used one when full. */
  set(hash: string, claims: Claims): void {
    this.#entries.delete(hash);
    this.#entries.set(hash, claims);
    if (this.#entries.size <= this.#limit) return;
    const oldest = this.#entries.keys().next();
    if (oldest.done !== true) this.#entries.delete(oldest.value);
  }

  /** Forgets one token. */
  delete(hash: string): void {
    this.#entries.delete(hash);
  }

  /** How many tokens are remembered. */
  get size(): number {
    return this.#entries.size;
  }
}
