/**
 * The agent's journal of calls: which ids were begun, so that none is started twice, not even by the next process.
 * A file of lines, appended without fsync: it survives a killed agent, not a power cut (design section 5).
 * Layout: a head `longline-journal 1 BOOT`, then `b ID EPOCH_MS` and `e ID EPOCH_MS`. Rewritten when it has grown.
 */
import { closeSync, openSync, readFileSync, renameSync, writeFileSync, writeSync } from "node:fs";
import { uptime } from "node:os";
import { join } from "node:path";
import { JOURNAL } from "../limits.ts";

interface Entry {
  at: number;
  isEnded: boolean;
  /** Begun by a process before this one. */
  isEarlier: boolean;
}

const HEAD = "longline-journal 1";
const LINE = /^([be]) (c_[A-Za-z0-9_-]{22}) (\d{1,16})$/;
/** Lines the file may hold before it is rewritten: each entry has at most two. */
const MAX_LINES = JOURNAL.entries * 6;

export class Journal {
  readonly #path: string;
  readonly #now: () => number;
  readonly #entries = new Map<string, Entry>();
  #file: number | null = null;
  #lines = 0;
  /** No id of the last ten minutes can be missing: same boot as the file, and nothing was pushed out. */
  #isComplete = true;

  constructor(stateDir: string, now: () => number = Date.now, boot: string = bootId()) {
    this.#path = join(stateDir, "journal");
    this.#now = now;
    this.#read(boot);
    this.#rewrite(boot);
    this.#boot = boot;
  }

  readonly #boot: string;

  /** What is known of an id; undefined when it was never begun, as far as the journal goes. */
  get(callId: string): { isEnded: boolean; isEarlier: boolean } | undefined {
    return this.#entries.get(callId);
  }

  /** True when an id that is not in here certainly was not begun. */
  get isComplete(): boolean {
    return this.#isComplete;
  }

  /** Marks a call as begun, before anything is done for it. */
  begin(callId: string): void {
    this.#entries.set(callId, { at: this.#now(), isEnded: false, isEarlier: false });
    this.#append("b", callId);
    this.#bound();
  }

  /** Marks a call as over: its outcome exists or nobody wants it. */
  end(callId: string): void {
    const entry = this.#entries.get(callId);
    if (!entry || entry.isEnded) return;
    entry.isEnded = true;
    this.#append("e", callId);
  }

  close(): void {
    if (this.#file !== null) closeSync(this.#file);
    this.#file = null;
  }

  #append(mark: "b" | "e", callId: string): void {
    if (this.#file === null) return;
    try {
      writeSync(this.#file, `${mark} ${callId} ${this.#now()}\n`);
      this.#lines += 1;
      if (this.#lines > MAX_LINES) this.#rewrite(this.#boot);
    } catch {
      // A full disk must not stop calls. What cannot be written is not claimed later.
      this.#isComplete = false;
    }
  }

  #bound(): void {
    const oldest = this.#now() - JOURNAL.keepMs;
    for (const [id, entry] of this.#entries) {
      const isOld = entry.at < oldest;
      if (!isOld && this.#entries.size <= JOURNAL.entries) return;
      if (!isOld) this.#isComplete = false;
      this.#entries.delete(id);
    }
  }

  #read(boot: string): void {
    let text: string;
    try {
      text = readFileSync(this.#path, "utf8");
    } catch {
      return; // The first start.
    }
    const [head, ...lines] = text.split("\n");
    this.#isComplete = head === `${HEAD} ${boot}`;
    const oldest = this.#now() - JOURNAL.keepMs;
    for (const line of lines) {
      const [, mark, id, at] = LINE.exec(line) ?? [];
      if (id === undefined || Number(at) < oldest) continue;
      if (mark === "b") this.#entries.set(id, { at: Number(at), isEnded: false, isEarlier: true });
      else if (this.#entries.has(id)) this.#entries.set(id, { at: Number(at), isEnded: true, isEarlier: true });
    }
    this.#bound();
  }

  #rewrite(boot: string): void {
    const lines = [`${HEAD} ${boot}`];
    for (const [id, entry] of this.#entries) {
      lines.push(`b ${id} ${entry.at}`);
      if (entry.isEnded) lines.push(`e ${id} ${entry.at}`);
    }
    const next = `${this.#path}.next`;
    writeFileSync(next, `${lines.join("\n")}\n`, { mode: 0o600 });
    renameSync(next, this.#path);
    this.close();
    this.#file = openSync(this.#path, "a", 0o600);
    this.#lines = lines.length;
  }
}

/** Names the boot of this machine; a second boot means that the file may lack its last lines. */
function bootId(): string {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  } catch {
    // Elsewhere the time of the boot, to the minute, says as much.
    return String(Math.round((Date.now() / 1000 - uptime()) / 60));
  }
}
