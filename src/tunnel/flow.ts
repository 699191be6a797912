/**
 * Credit and budget of the answers that flow through one object. Pure accounting: callers send the frames.
 *
 * `outstanding` is what a sender may still send, `held` what arrived and was not read. Their sum over all calls never
 * exceeds `total`; every change asserts it. Each slot (a call the sender may run) has a base of `initialBytes` that
 * nobody else can take, so a slow reader never starves another call. What is left beyond the bases widens the windows
 * of large answers, up to `maxWindowBytes` each.
 */

export interface FlowOptions {
  /** Bytes for all calls together. */
  totalBytes: number;
  /** Bytes a call may send before its first credit, and its guaranteed share. */
  initialBytes: number;
  /** Bytes by which a sender of whole messages is refilled; less is not worth a frame. */
  refillBytes: number;
  /** Bytes one call may have on the way and held, at most. */
  maxWindowBytes: number;
  /** Calls that the sender runs at once. */
  slots: number;
}

interface Account {
  outstanding: number;
  held: number;
  /** The sender has nothing more to send; the account lives on what is held. */
  isFinished: boolean;
  /** This account's part of `#committed`. */
  committed: number;
}

export class FlowBudget {
  readonly #options: FlowOptions;
  #slots: number;
  readonly #accounts = new Map<string, Account>();
  #running = 0;
  /** Bytes outstanding and held, over all accounts. */
  #reserved = 0;
  /** As `#reserved`, with each running account counted at least at its base. */
  #committed = 0;

  constructor(options: FlowOptions) {
    this.#options = options;
    this.#slots = options.slots;
  }

  /** Bytes outstanding and held, over all calls. */
  get reservedBytes(): number {
    return this.#reserved;
  }

  /** Calls whose sender may still send. */
  get running(): number {
    return this.#running;
  }

  /** Takes over the number of calls that the present sender runs at once. */
  setSlots(slots: number): void {
    this.#slots = slots;
  }

  /** Whether a further call can have its slot and its base. */
  canOpen(): boolean {
    return this.#running < this.#slots && this.#committed + this.#options.initialBytes <= this.#options.totalBytes;
  }

  /** Opens a call's account. Returns its first credit in bytes: less than the base only when opened without `canOpen`. */
  open(id: string): number {
    if (this.#accounts.has(id)) throw new Error("flow: account is open already");
    const account: Account = { outstanding: 0, held: 0, isFinished: false, committed: 0 };
    this.#accounts.set(id, account);
    this.#running += 1;
    return this.#lend(account, Math.min(this.#options.initialBytes, this.#free()));
  }

  /** Bytes arrived. False when they exceed what the sender was lent: nothing is booked then. */
  receive(id: string, bytes: number): boolean {
    const account = this.#accounts.get(id);
    if (account === undefined || account.isFinished || bytes > account.outstanding) return false;
    account.outstanding -= bytes;
    account.held += bytes;
    this.#settle(account);
    return true;
  }

  /** Held bytes were handed on. */
  read(id: string, bytes: number): void {
    const account = this.#accounts.get(id);
    if (account === undefined) return;
    if (bytes > account.held) throw new Error("flow: more read than held");
    account.held -= bytes;
    this.#reserved -= bytes;
    this.#settle(account);
  }

  /** Lends more to a sender that has `expectedBytes` still to send, and returns it; 0 when it is not worth a frame. */
  topUp(id: string, expectedBytes: number): number {
    const account = this.#accounts.get(id);
    if (account === undefined || account.isFinished) return 0;
    const { initialBytes, totalBytes, maxWindowBytes } = this.#options;
    const used = account.outstanding + account.held;
    const spare = Math.max(0, totalBytes - this.#committed - Math.max(0, this.#slots - this.#running) * initialBytes);
    const limit = Math.min(maxWindowBytes, Math.max(initialBytes, used) + spare);
    const wanted = expectedBytes - account.outstanding;
    const bytes = Math.min(limit - used, wanted, this.#free());
    if (bytes <= 0 || bytes < Math.min(initialBytes / 2, wanted)) return 0;
    return this.#lend(account, bytes);
  }

  /** As `topUp` for a sender of whole messages of unknown number: it keeps its base and gets no more. */
  refill(id: string): number {
    const account = this.#accounts.get(id);
    if (account === undefined || account.isFinished) return 0;
    const bytes = Math.min(this.#options.initialBytes - account.outstanding - account.held, this.#free());
    return bytes < this.#options.refillBytes ? 0 : this.#lend(account, bytes);
  }

  /** True while a running call has no credit although nothing of it is held: it waits until others give back. */
  isStarved(id: string): boolean {
    const account = this.#accounts.get(id);
    return account !== undefined && !account.isFinished && account.outstanding + account.held === 0;
  }

  /** Whether any account is starved. Only calls that were opened without `canOpen` can be. */
  get hasStarved(): boolean {
    for (const id of this.#accounts.keys()) if (this.isStarved(id)) return true;
    return false;
  }

  /** The call is on a new link, or on its first: what was outstanding is void. Returns the credit of this link. */
  restart(id: string): number {
    const account = this.#accounts.get(id);
    if (account === undefined) return this.open(id);
    this.#reserved -= account.outstanding;
    account.outstanding = 0;
    this.#settle(account);
    return this.#lend(account, Math.max(0, Math.min(this.#options.initialBytes - account.held, this.#free())));
  }

  /** What is held was thrown away, as nobody reads it; the sender keeps its credit. */
  discard(id: string): void {
    const account = this.#accounts.get(id);
    if (account !== undefined) this.read(id, account.held);
  }

  /** The sender has sent everything: its credit returns, what is held stays. */
  finish(id: string): void {
    const account = this.#accounts.get(id);
    if (account === undefined || account.isFinished) return;
    this.#reserved -= account.outstanding;
    account.outstanding = 0;
    account.isFinished = true;
    this.#running -= 1;
    this.#settle(account);
  }

  /** Forgets the call and everything it holds. */
  close(id: string): void {
    const account = this.#accounts.get(id);
    if (account === undefined) return;
    this.#accounts.delete(id);
    if (!account.isFinished) this.#running -= 1;
    this.#reserved -= account.outstanding + account.held;
    this.#committed -= account.committed;
  }

  #free(): number {
    return Math.max(0, this.#options.totalBytes - this.#reserved);
  }

  #lend(account: Account, bytes: number): number {
    account.outstanding += bytes;
    this.#reserved += bytes;
    this.#settle(account);
    return bytes;
  }

  #settle(account: Account): void {
    const used = account.outstanding + account.held;
    const committed = account.isFinished ? used : Math.max(this.#options.initialBytes, used);
    this.#committed += committed - account.committed;
    account.committed = committed;
    if (this.#reserved > this.#options.totalBytes || this.#reserved < 0) throw new Error("flow: budget broken");
  }
}
