/** The project behind the reference stdio server: phase and human gates live in its database, which all its processes share. */
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { isObject, text, type Json } from "./json.ts";

/** Advertised while planning. */
const ADVERTISED = words(`
  project work resume events project_overview get_next_action start continue board ask context_preview checkpoint retrieve_handle
  register_decision submit_spec submit_plan register_result request_scope_extension find_symbol read git_status git_diff
  refresh_overlay analyze_impact schedule semantic_status sync stats run_validation`);
/** Dispatched for old callers, and listed nowhere. */
const UNLISTED = words("get_symbol get_file_slice");
/** What is left once the plan is under way. */
const EXECUTING = words(
  "project work resume events get_next_action continue board read git_status git_diff register_result stats run_validation",
);
const REQUIRED = new Map([["get_next_action", ["work_id"]]]);
const MAX_READS = 8;
const DECISIONS = ["approve", "request_changes"];

interface Interaction {
  work: unknown;
  status: "pending" | "accepted" | "declined" | "cancelled";
  decision?: unknown;
}

interface Database {
  phase: "planning" | "executing";
  interactions: Record<string, Interaction>;
}

/** An answer to a gate that is not taken; `data` of the error. */
export class GateError extends Error {
  readonly data: Json;
  constructor(data: Json) {
    super("Invalid params");
    this.data = data;
  }
}

export class DynosaiProject {
  readonly #file: string;

  /** The file is the database; an empty or absent one is a new project. */
  constructor(file: string) {
    this.#file = file;
  }

  /** Tools of the present phase, in their fixed order. */
  tools(): Json[] {
    return (this.phase === "planning" ? ADVERTISED : EXECUTING).map((name) => ({
      name: `dynosai_${name}`,
      description: `DynosAI ${name.replaceAll("_", " ")}.`,
      inputSchema: { type: "object", properties: { work_id: { type: "string" } }, required: REQUIRED.get(name) ?? [] },
    }));
  }

  get phase(): Database["phase"] {
    return this.#read().phase;
  }

  knows(name: string): boolean {
    return [...ADVERTISED, ...UNLISTED].some((known) => `dynosai_${known}` === name);
  }

  /** Runs a tool. Nothing it says is ever flagged outside: a failure is `isError: false` with the failure inside. */
  async run(name: string, args: Json): Promise<Json> {
    const missing = (REQUIRED.get(name.replace("dynosai_", "")) ?? []).filter((key) => args[key] === undefined);
    if (missing.length > 0) return invalid(`missing required argument(s): ${missing.join(", ")}`);
    const { reads } = args;
    if (name === "dynosai_read" && Array.isArray(reads) && reads.length > MAX_READS) return invalid(`at most ${MAX_READS} reads`);
    if (name === "dynosai_ask") return { isError: true, error_type: "RuntimeError", message: "no provider is configured" };
    if (name === "dynosai_start") this.#write({ ...this.#read(), phase: "executing" });
    if (name === "dynosai_run_validation") await new Promise((resolve) => setTimeout(resolve, Number(args["ms"] ?? 0)));
    return { accepted: true, tool: name, ...args };
  }

  /** The gate of a piece of work: the open one, or a new one. */
  gate(work: unknown): string {
    const database = this.#read();
    const open = Object.entries(database.interactions).find(([, gate]) => gate.work === work && gate.status === "pending");
    if (open) return open[0];
    const id = `INT-${Object.keys(database.interactions).length + 1}`;
    this.#write({ ...database, interactions: { ...database.interactions, [id]: { work, status: "pending" } } });
    return id;
  }

  /** Whether a person has approved this work: what the database says, whatever a client sends. */
  approved(work: unknown): boolean {
    return Object.values(this.#read().interactions).some((gate) => gate.work === work && gate.status === "accepted");
  }

  /** Takes a person's answer to a gate. Throws GateError. */
  answer(id: string, work: unknown, answer: unknown): Interaction {
    const database = this.#read();
    const gate = database.interactions[id];
    if (gate === undefined) throw new GateError({ reason: "unknown_interaction", interaction_id: id });
    if (gate.status !== "pending") throw new GateError({ reason: "interaction_not_pending", interaction_id: id, status: gate.status });
    if (gate.work !== work) throw new GateError({ reason: "interaction_work_mismatch", interaction_id: id });
    const closed = close(gate, answer);
    this.#write({ ...database, interactions: { ...database.interactions, [id]: closed } });
    return closed;
  }

  #read(): Database {
    try {
      return JSON.parse(readFileSync(this.#file, "utf8")) as Database;
    } catch {
      return { phase: "planning", interactions: {} };
    }
  }

  #write(database: Database): void {
    writeFileSync(`${this.#file}.new`, JSON.stringify(database));
    renameSync(`${this.#file}.new`, this.#file);
  }
}

/** Anything but accept and decline counts as cancel, an error too. */
function close(gate: Interaction, answer: unknown): Interaction {
  const { action, content } = isObject(answer) ? answer : {};
  if (action === "decline") return { ...gate, status: "declined" };
  if (action !== "accept") return { ...gate, status: "cancelled" };
  const decision = isObject(content) ? content["decision"] : undefined;
  if (typeof decision !== "string" || !DECISIONS.includes(decision)) throw new GateError({ reason: "invalid_interaction_content" });
  return { ...gate, status: "accepted", decision };
}

/** What a person is asked. */
export function question(): Json {
  const decision = { type: "string", enum: DECISIONS };
  return {
    method: "elicitation/create",
    params: {
      mode: "form",
      message: "Approve the plan?",
      requestedSchema: { type: "object", properties: { decision }, required: ["decision"] },
    },
  };
}

/** Codex is given a short text; everybody else the whole value, as some hosts show the model nothing but text. */
export function toolResult(value: Json, client: unknown): Json {
  const isCodex = typeof client === "string" && client.includes("codex");
  return { isError: false, content: [text(isCodex ? { accepted: value["accepted"] } : value)], structuredContent: value };
}

function invalid(message: string): Json {
  return { accepted: false, error_type: "tool_input_validation", message, repair_required: true };
}

function words(text: string): string[] {
  return text.trim().split(/\s+/);
}
