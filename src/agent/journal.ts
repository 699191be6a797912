/**
 * The agent's journal of calls: which ids were begun, so that none is started twice, not even by the next process.
 * A file of lines, appended without fsync: it survives a killed agent, not a power cut (design section 5).
 * Layout: a head `longline-journal 1 BOOT`, then `b ID EPOCH_MS` for a begin, `e ID EPOCH_MS` for an end, and
 * `x EPOCH_MS` when ids were lost. Rewritten when it has grown. An id that has ended is forgotten first; one that has
 * not is kept for as long as a call can take.
 */
import { closeSync, openSync, readFileSync, renameSync, writeFileSync, writeSync } from "node:fs";
import { uptime } from "node:os";
import { join } from "node:path";
import { JOURNAL } from "../limits.ts";

interface Entry {
  /** Epoch ms of its end, or of its begin while it has none. */
  at: number;
  isEnded: boolean;
  /** Begun by a process before this one. */
  isEarlier: boolean;
}

const HEAD = "longline-journal 1";
const LINE = /^([be]) (c_[A-Za-z0-9_-]{22}) (\d{1,16})$/;
const LOSS = /^x (\d{1,16})$/;
/** Lines the file may hold before it is rewritten: each entry has at most two. */
const MAX_LINES = JOURNAL.entries * 6;

export class Journal {
  readonly #path: string;
  readonly #now: () => number;
  readonly #boot: string;
  /** Ids that have not ended, and those that have, each oldest first. */
  readonly #begun = new Map<string, Entry>();
  readonly #ended = new Map<string, Entry>();
  #file: number | null = null;
  #lines = 0;
  /** Ends that go with the next line. One that is lost costs nothing: what had begun is not started again either way. */
  #ends = "";
  /** Epoch ms when an id that may still be asked for was lost. */
  #lostAt: number | null = null;

  constructor(stateDir: string, now: () => number = Date.now, boot: string = bootId()) {
    this.#path = join(stateDir, "journal");
    this.#now = now;
    this.#boot = boot;
    this.#read();
    this.#rewrite();
  }

  /** What is known of an id; undefined when it was never begun, as far as the journal goes. */
  get(callId: string): { isEnded: boolean; isEarlier: boolean } | undefined {
    return this.#begun.get(callId) ?? this.#ended.get(callId);
  }

  /** True when an id that is not in here certainly was not begun, if anybody can still ask for it. */
  get isComplete(): boolean {
    return this.#lostAt === null || this.#now() - this.#lostAt > JOURNAL.keepMs;
  }

  /** Marks a call as begun, before anything is done for it. */
  begin(callId: string): void {
    this.#begun.set(callId, { at: this.#now(), isEnded: false, isEarlier: false });
    this.#append(`b ${callId}`);
    this.#bound();
  }

  /** Marks a call as over: its outcome exists or nobody wants it. */
  end(callId: string): void {
    const entry = this.#begun.get(callId);
    if (!entry) return;
    this.#begun.delete(callId);
    this.#ended.set(callId, { at: this.#now(), isEnded: true, isEarlier: entry.isEarlier });
    this.#lines += 1;
    this.#ends += `e ${callId} ${this.#now()}\n`;
  }

  close(): void {
    this.#write("");
    if (this.#file !== null) closeSync(this.#file);
    this.#file = null;
  }

  #append(line: string): void {
    this.#lines += 1;
    this.#write(`${line} ${this.#now()}\n`);
  }

  /** One write for a call: the ends before it, and its own line. */
  #write(text: string): void {
    const lines = this.#ends + text;
    if (this.#file === null || lines === "") return;
    try {
      writeSync(this.#file, lines);
      this.#ends = "";
      if (this.#lines > MAX_LINES) this.#rewrite();
    } catch {
      // A full disk must not stop calls. What cannot be written is not claimed later.
      this.#lostAt = this.#now();
    }
  }

  #bound(): void {
    const now = this.#now();
    for (const [id, entry] of this.#ended) {
      const isOld = entry.at < now - JOURNAL.keepMs;
      if (!isOld && this.#begun.size + this.#ended.size <= JOURNAL.entries) break;
      this.#ended.delete(id);
      if (!isOld) this.#lose(now);
    }
    for (const [id, entry] of this.#begun) {
      const isOld = entry.at < now - JOURNAL.begunMs;
      if (!isOld && this.#begun.size <= JOURNAL.entries) break;
      this.#begun.delete(id);
      if (!isOld) this.#lose(now);
    }
  }

  #lose(now: number): void {
    // Once in a while is enough: the loss is remembered for longer than that.
    const isNews = this.#lostAt === null || now - this.#lostAt > JOURNAL.keepMs / 10;
    this.#lostAt = isNews ? now : this.#lostAt;
    if (isNews) this.#append("x");
  }

  #read(): void {
    let text: string;
    try {
      text = readFileSync(this.#path, "utf8");
    } catch {
      return; // The first start.
    }
    const [head, ...lines] = text.split("\n");
    if (head !== `${HEAD} ${this.#boot}`) this.#lostAt = this.#now();
    for (const line of lines) this.#readLine(line);
    this.#bound();
  }

  #readLine(line: string): void {
    const lostAt = LOSS.exec(line)?.[1];
    if (lostAt !== undefined) this.#lostAt = Math.max(this.#lostAt ?? 0, Number(lostAt));
    const [, mark, id, at] = LINE.exec(line) ?? [];
    if (id === undefined) return;
    if (mark === "b") this.#begun.set(id, { at: Number(at), isEnded: false, isEarlier: true });
    else if (this.#begun.delete(id)) this.#ended.set(id, { at: Number(at), isEnded: true, isEarlier: true });
  }

  #rewrite(): void {
    const lines = [`${HEAD} ${this.#boot}`];
    if (this.#lostAt !== null) lines.push(`x ${this.#lostAt}`);
    for (const [id, entry] of this.#ended) lines.push(`b ${id} ${entry.at}`, `e ${id} ${entry.at}`);
    for (const [id, entry] of this.#begun) lines.push(`b ${id} ${entry.at}`);
    const next = `${this.#path}.next`;
    writeFileSync(next, `${lines.join("\n")}\n`, { mode: 0o600 });
    renameSync(next, this.#path);
    this.#ends = "";
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
