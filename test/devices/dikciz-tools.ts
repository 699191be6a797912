/** The phone's forty tools and the dispatcher behind them, which its WebSocket shares (camelCase there, snake_case here). */
import { isObject, text, type Json } from "./json.ts";

const READ = words(`
  control_status automation_status snapshot find wait_for home_get widget_get config_get script_logs diagnostics screenshot ui_dump
  remote_auth_status app_catalogue accessibility_snapshot`);
const CHANGE = words(`
  tap long_press select_page scroll_by scroll_to set_text launch_app add_widget widget_move widget_resize grid_set config_replace
  config_seed config_reset remote_auth_enable remote_auth_disable automation_service_sync app_action accessibility_action
  automation_trigger automation_dispatch shell intent open_automation_setup html_widget_renderer_crash`);

const STRING = { type: "string" };
/** The published build gives string limits as the numeric keyword `maximum`, which validators ignore. */
const PROPERTIES = new Map<string, Json>([
  ["shell", { command: { type: "string", maximum: 8192 }, root: { type: "boolean" } }],
  ["tap", { semanticId: { type: "string", maximum: 256 } }],
  ["set_text", { text: { type: "string", maximum: 8192 } }],
  ["automation_trigger", { event: STRING }],
  ["automation_status", { operationId: STRING }],
  ["accessibility_action", { action: STRING }],
]);
const SNAPSHOT_MS = 5_000;
const LIVE_SNAPSHOTS = 32;
/** Looks at an operation before it has ended. */
const POLLS = 2;
const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";

/** What a call of the shell may do while it runs. */
export interface ShellIo {
  line(text: string): void;
  /** Ends when the caller left or cancelled. */
  signal: AbortSignal;
}

/** A tool's outcome as the dispatcher has it, for MCP and WebSocket alike. */
export interface ToolOutcome {
  data: Json;
  isError: boolean;
  image?: string;
}

export class DikcizTools {
  /** Commands of the shell, in order, with how each ended. */
  readonly shells: { command: string; state: "running" | "ended" | "cancelled" }[] = [];
  /** Every call that ran, by tool. */
  readonly runs = new Map<string, number>();
  readonly #now: () => number;
  readonly #holding = new Set<ShellIo>();
  #operations: { id: string; polls: number }[] = [];
  #snapshots: number[] = [];

  constructor(now: () => number) {
    this.#now = now;
  }

  list(): Json[] {
    return [...READ.map((name) => definition(name, true)), ...CHANGE.map((name) => definition(name, false))];
  }

  has(name: string): boolean {
    return READ.includes(name) || CHANGE.includes(name);
  }

  /** Every held shell prints another line. */
  say(): void {
    for (const io of this.#holding) io.line("more\n");
  }

  async run(name: string, args: Json, io: ShellIo): Promise<ToolOutcome> {
    this.runs.set(name, (this.runs.get(name) ?? 0) + 1);
    const known = PROPERTIES.get(name) ?? {};
    if (Object.keys(args).some((key) => !(key in known))) return failed("validation_failed", "unexpected field");
    if (name === "shell") return await this.#shell(args, io);
    if (name === "screenshot") return { data: { width: 1080, height: 2400, selectedPageId: "1H1V" }, isError: false, image: PNG };
    if (name === "accessibility_action") return NEEDS_PERMISSION;
    if (name === "accessibility_snapshot") return this.#snapshot();
    if (name === "automation_trigger") return this.#trigger();
    if (name === "automation_status" && typeof args["operationId"] === "string") return this.#status(args["operationId"]);
    return done({ ok: true, ...args });
  }

  /** `lines N` prints N lines; `hold` prints one and goes on until it is cancelled; anything else says nothing. */
  async #shell(args: Json, io: ShellIo): Promise<ToolOutcome> {
    // Advertised as optional, and refused without.
    if (typeof args["command"] !== "string" || typeof args["root"] !== "boolean") return failed("validation_failed", "command and root");
    if (args["root"]) return failed("root_unavailable", "root is not available");
    const command = args["command"];
    const shell: DikcizTools["shells"][number] = { command, state: "running" };
    this.shells.push(shell);
    const count = command === "hold" ? 1 : Number(/^lines (\d+)$/.exec(command)?.[1] ?? 0);
    const lines = Array.from({ length: count }, (_, at) => `line ${at + 1}\n`);
    for (const line of lines) io.line(line);
    if (command === "hold") {
      this.#holding.add(io);
      await aborted(io.signal);
      this.#holding.delete(io);
    }
    shell.state = io.signal.aborted ? "cancelled" : "ended";
    return done({ executionScope: "app_sandbox", exitCode: 0, output: lines.join(""), outputTruncated: false });
  }

  #snapshot(): ToolOutcome {
    const now = this.#now();
    this.#snapshots = this.#snapshots.filter((at) => now - at < SNAPSHOT_MS);
    if (this.#snapshots.length >= LIVE_SNAPSHOTS) return failed("accessibility_snapshot_limit", "too many live snapshots");
    this.#snapshots.push(now);
    return done({ snapshotId: `s${this.runs.get("accessibility_snapshot") ?? 0}`, nodes: [] });
  }

  #trigger(): ToolOutcome {
    const id = `op-${41 + this.#operations.length}`;
    this.#operations.push({ id, polls: 0 });
    return done({ queued: true, operationId: id, status: "pending" });
  }

  #status(operationId: string): ToolOutcome {
    const operation = this.#operations.find(({ id }) => id === operationId);
    if (!operation) return failed("validation_failed", "no such operation");
    operation.polls += 1;
    return done(
      operation.polls <= POLLS ? { operationId, status: "pending" } : { operationId, status: "failed", code: "android_rejected" },
    );
  }
}

const NEEDS_PERMISSION: ToolOutcome = {
  isError: true,
  data: {
    code: "accessibility_not_enabled",
    message: "Accessibility access is not enabled",
    permissionRequest: {
      requirement: "accessibility",
      kind: "systemSettings",
      state: "needsSetup",
      openTool: "dikciz_open_automation_setup",
    },
  },
};

/** The outcome as an MCP result; the image moves out of the structured content. */
export function toolResult({ data, isError, image }: ToolOutcome): Json {
  const message = isError && typeof data["message"] === "string" ? data["message"] : "tool completed";
  const pictures = image === undefined ? [] : [{ type: "image", mimeType: "image/png", data: image }];
  return { isError, content: [...pictures, text(message)], structuredContent: data };
}

function definition(name: string, readOnlyHint: boolean): Json {
  const properties = PROPERTIES.get(name) ?? {};
  const required = isObject(properties["command"]) ? ["command"] : [];
  return {
    name: `dikciz_${name}`,
    title: name.replaceAll("_", " "),
    description: `Runs ${name} on the phone.`,
    inputSchema: { type: "object", additionalProperties: false, properties, ...(required.length > 0 ? { required } : {}) },
    annotations: { readOnlyHint, destructiveHint: name === "app_action", openWorldHint: false },
  };
}

function words(text: string): string[] {
  return text.trim().split(/\s+/);
}

function done(data: Json): ToolOutcome {
  return { data, isError: false };
}

function failed(code: string, message: string): ToolOutcome {
  return { data: { code, message }, isError: true };
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
