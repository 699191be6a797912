/**
 * `Mcp-Param-*` for calls of a client that knows only stdio, which has no headers: the tools' own schemas say which
 * arguments are mirrored (`x-mcp-header`, MCP 2026-07-28, Tools). They are learnt when a call needs them.
 */
import { paramHeaders, rulesByTool } from "../../agent/upstreams/http-headers.ts";
import { CATALOGUE } from "../../limits.ts";
import type { ParamRule } from "../../policy/param-headers.ts";
import { isRecord } from "./message.ts";

/** Asks for one page of `tools/list` and gives its result, or undefined when there is none. */
export type ListPage = (cursor: string | undefined) => Promise<unknown>;

export class ParamRules {
  #rules: ReadonlyMap<string, readonly ParamRule[]> = new Map();

  /** The headers for one `tools/call`. */
  headers(params: Record<string, unknown>): Record<string, string> {
    const rules = typeof params["name"] === "string" ? this.#rules.get(params["name"]) : undefined;
    if (rules === undefined) return {};
    const found = Object.entries(paramHeaders(rules, params["arguments"]));
    return Object.fromEntries(found.map(([suffix, value]) => [`mcp-param-${suffix}`, value]));
  }

  /** Reads the whole list. */
  async learn(list: ListPage): Promise<void> {
    const tools: string[] = [];
    let cursor: string | undefined;
    for (let page = 0; page < CATALOGUE.maxPages; page += 1) {
      const result = await list(cursor);
      if (!isRecord(result) || !Array.isArray(result["tools"])) break;
      tools.push(...result["tools"].map((tool) => JSON.stringify(tool)));
      cursor = typeof result["nextCursor"] === "string" ? result["nextCursor"] : undefined;
      if (cursor === undefined) break;
    }
    this.#rules = rulesByTool(tools);
  }
}
