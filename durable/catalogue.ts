/**
 * The device's catalogue: its discover result and lists as last known, in SQLite pieces. It answers lists and
 * descriptions while the device is away, and holds the tool schemas that parameter headers are checked against.
 */
import { z } from "zod";
import { CATALOGUE } from "../src/limits.ts";
import type { ListName } from "../src/policy/decide.ts";
import { NO_PREFIXES, Prefixes } from "../src/policy/other-names.ts";
import { type ParamRule, readParamRules } from "../src/policy/param-headers.ts";

/** `discover` as the agent sends it; other members are kept. */
export const Discover = z.looseObject({
  capabilities: z.record(z.string(), z.unknown()),
  serverInfo: z.looseObject({ name: z.string(), version: z.string() }),
  instructions: z.string().optional(),
  /** Prefixes that the agent put before names of its upstreams. */
  prefixes: Prefixes.optional(),
});
export type Discover = z.infer<typeof Discover>;

/** The payload of a `catalogue` frame. */
export const CatalogueBody = z.looseObject({
  discover: Discover,
  tools: z.array(z.unknown()).max(CATALOGUE.maxTools),
  resources: z.array(z.unknown()),
  resourceTemplates: z.array(z.unknown()),
  prompts: z.array(z.unknown()),
});
export type CatalogueBody = z.infer<typeof CatalogueBody>;

type Part = ListName | "discover" | "params";
const LIST_NAMES = ["tools", "resources", "resourceTemplates", "prompts"] as const satisfies readonly ListName[];
const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: false, ignoreBOM: true });

export class Catalogue {
  readonly #storage: DurableObjectStorage;
  readonly #texts = new Map<Part, string | null>();
  #params: Map<string, readonly ParamRule[]> | undefined;
  #prefixes: Prefixes | undefined;

  constructor(storage: DurableObjectStorage) {
    this.#storage = storage;
  }

  /** False until a first catalogue came. */
  get isKnown(): boolean {
    return this.#text("discover") !== null;
  }

  /** The stored discover result, or undefined. */
  discover(): Discover | undefined {
    const text = this.#text("discover");
    return text === null ? undefined : Discover.parse(JSON.parse(text));
  }

  /** The stored items of a list, or undefined when no catalogue is known. */
  items(name: ListName): unknown[] | undefined {
    const text = this.#text(name);
    return text === null ? undefined : (JSON.parse(text) as unknown[]);
  }

  /** The prefixes in use on the device. */
  get prefixes(): Prefixes {
    this.#prefixes ??= this.discover()?.prefixes ?? NO_PREFIXES;
    return this.#prefixes;
  }

  /** What the tool's schema says about parameter headers; empty for a tool without annotations or an unknown one. */
  paramRules(tool: string): readonly ParamRule[] {
    this.#params ??= new Map(JSON.parse(this.#text("params") ?? "[]") as [string, ParamRule[]][]);
    return this.#params.get(tool) ?? [];
  }

  /** Replaces everything; tells the lists that differ from before. */
  replace(body: CatalogueBody): ListName[] {
    const differing = LIST_NAMES.filter((name) => (this.#text(name) ?? "[]") !== JSON.stringify(body[name]));
    this.#storage.transactionSync(() => {
      this.#put("discover", JSON.stringify(body.discover));
      this.#prefixes = body.discover.prefixes ?? NO_PREFIXES;
      for (const name of LIST_NAMES) this.#put(name, JSON.stringify(body[name]));
      this.#putParams(body.tools);
    });
    return differing;
  }

  /** Replaces one list if it differs; true when it did. A list before the first catalogue is not kept. */
  replaceList(name: ListName, items: readonly unknown[]): boolean {
    const known = this.#text(name);
    const text = JSON.stringify(items);
    if (known === null || known === text) return false;
    if (!this.#fits(name, text) || (name === "tools" && items.length > CATALOGUE.maxTools)) return false;
    this.#storage.transactionSync(() => {
      this.#put(name, text);
      if (name === "tools") this.#putParams(items);
    });
    return true;
  }

  #fits(name: ListName, text: string): boolean {
    let bytes = encoder.encode(text).length;
    for (const other of LIST_NAMES) if (other !== name) bytes += encoder.encode(this.#text(other) ?? "").length;
    return bytes <= CATALOGUE.maxBytes;
  }

  #putParams(tools: readonly unknown[]): void {
    const entries: [string, readonly ParamRule[]][] = [];
    for (const tool of tools) {
      if (typeof tool !== "object" || tool === null) continue;
      const { name, inputSchema } = tool as Record<string, unknown>;
      const { rules } = readParamRules(inputSchema);
      if (typeof name === "string" && rules.length > 0) entries.push([name, rules]);
    }
    this.#put("params", JSON.stringify(entries));
    this.#params = new Map(entries);
  }

  #put(part: Part, text: string): void {
    const { sql } = this.#storage;
    sql.exec("DELETE FROM catalogue WHERE part = ?", part);
    const bytes = encoder.encode(text);
    for (let piece = 0, from = 0; from < bytes.length; piece += 1, from += CATALOGUE.pieceBytes) {
      sql.exec(
        "INSERT INTO catalogue (part, piece, bytes) VALUES (?, ?, ?)",
        part,
        piece,
        bytes.slice(from, from + CATALOGUE.pieceBytes).buffer,
      );
    }
    this.#texts.set(part, text);
  }

  #text(part: Part): string | null {
    const cached = this.#texts.get(part);
    if (cached !== undefined) return cached;
    const rows = this.#storage.sql
      .exec<{ bytes: ArrayBuffer }>("SELECT bytes FROM catalogue WHERE part = ? ORDER BY piece", part)
      .toArray();
    const text = rows.length === 0 ? null : decoder.decode(concat(rows.map((row) => new Uint8Array(row.bytes))));
    this.#texts.set(part, text);
    return text;
  }
}

function concat(parts: readonly Uint8Array[]): Uint8Array {
  const [only] = parts;
  if (only !== undefined && parts.length === 1) return only;
  const whole = new Uint8Array(parts.reduce((bytes, part) => bytes + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
