/**
 * Which lists changed, told once each: by the agent's word, or because a catalogue differs from the one before, as
 * after a reconnect. Lists that are the same are not told.
 */
import type { ListName } from "../src/policy/decide.ts";
import type { ListKind } from "../src/tunnel/notices.ts";
import type { Desk } from "./desk.ts";

const KIND_OF: Readonly<Record<ListName, ListKind>> = {
  tools: "tools",
  prompts: "prompts",
  resources: "resources",
  resourceTemplates: "resources",
};

export class ListChanges {
  readonly #desk: Desk;
  /** Told on this link, with the catalogue still to come. */
  readonly #told = new Set<ListKind>();

  constructor(desk: Desk) {
    this.#desk = desk;
  }

  /** A new link: what was told on another one says nothing about the catalogue of this one. */
  linkUp(): void {
    this.#told.clear();
  }

  /** The agent says that a list changed. */
  said(kind: ListKind): void {
    this.#told.add(kind);
    this.#tell([kind]);
  }

  /** The agent's catalogue replaced another, from which it differs in these lists. */
  catalogue(differing: readonly ListName[]): void {
    const kinds = new Set([...differing.map((name) => KIND_OF[name]), ...(this.#desk.meta.get("untoldLists") ?? [])]);
    this.#tell([...kinds].filter((kind) => !this.#told.has(kind)));
    this.#told.clear();
  }

  /** The catalogue took a list over from an answer: should nobody say that it changed, the next catalogue would not show it. */
  answered(name: ListName): void {
    const kind = KIND_OF[name];
    const untold = this.#desk.meta.get("untoldLists") ?? [];
    if (!this.#told.has(kind) && !untold.includes(kind)) this.#desk.meta.set("untoldLists", [...untold, kind]);
  }

  #tell(kinds: readonly ListKind[]): void {
    const { meta } = this.#desk;
    const untold = meta.get("untoldLists") ?? [];
    if (untold.some((kind) => kinds.includes(kind)))
      meta.set(
        "untoldLists",
        untold.filter((kind) => !kinds.includes(kind)),
      );
    for (const kind of kinds) this.#desk.listeners.listChanged(kind);
  }
}
