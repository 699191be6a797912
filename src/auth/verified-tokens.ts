/**
 * Tokens whose signature this isolate has already checked. Bounded; the least recently used one leaves first. An entry
 * is only as good as its key and its expiry, which the reader checks on every use.
 *
 * SECURITY: by the token itself, not by a hash of it: whoever reads this memory also reads the root key, which makes
 * tokens, and a hash for each call costs fifty times the look-up (docs/adr/0032-verified-tokens-by-themselves.md).
 */
export class VerifiedTokens<Claims> {
  readonly #entries = new Map<string, Claims>();
  readonly #limit: number;

  /** Remembers `limit` tokens at most. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** The claims of a token, marks it as used. */
  get(token: string): Claims | undefined {
    const claims = this.#entries.get(token);
    if (claims === undefined) return undefined;
    this.#entries.delete(token);
    this.#entries.set(token, claims);
    return claims;
  }

  /** Remembers a verified token, and forgets the least recently used one when full. */
  set(token: string, claims: Claims): void {
    this.#entries.delete(token);
    this.#entries.set(token, claims);
    if (this.#entries.size <= this.#limit) return;
    const oldest = this.#entries.keys().next();
    if (oldest.done !== true) this.#entries.delete(oldest.value);
  }

  /** Forgets one token. */
  delete(token: string): void {
    this.#entries.delete(token);
  }

  /** How many tokens are remembered. */
  get size(): number {
    return this.#entries.size;
  }
}
