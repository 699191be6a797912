/** The board's tools as its plain HTTP API runs them; its MCP endpoint calls the same. `output` is always a string. */
import type { Json } from "./json.ts";

const NAMES = words(`phone_bridge_status screenshot wait_for_stable_screen touch_gesture enter_text keyboard_tap open_app open_url
  quick_action bridge_clipboard`);
/** Served by another process of the board; MCP only. */
const CONFIG_WEB = words("device_status support_bundle");
/** Input to the phone by HID, each followed by a screenshot. */
const HID = words("touch_gesture enter_text keyboard_tap");
const SHELL = "shell";

/** A tool's own failure. */
export interface BoardError {
  category: string;
  code: string;
  message: string;
  details?: Json;
}

export interface BoardOutcome {
  output: string;
  error?: BoardError;
  /** JPEG, in Base64. */
  image?: string;
  /** gzip, in Base64. */
  bundle?: string;
}

export interface BoardToolsOptions {
  /** ms that an input to the phone takes. */
  hidMs?: number;
  /** Bytes of a support bundle, and ms it takes. */
  bundleBytes?: number;
  bundleMs?: number;
}

export class BoardTools {
  /** `mcp_shell_enabled`: off unless the board's file says so. */
  isShellEnabled = false;
  /** Inputs that were begun and ended, whoever still waits for them. */
  readonly inputs: { tool: string; args: Json; isDone: boolean }[] = [];
  readonly #options: BoardToolsOptions;
  readonly #shells = new Map<string, number>();
  #isBundling = false;

  constructor(options: BoardToolsOptions) {
    this.#options = options;
  }

  /** What MCP lists: the allow-list, never `list_tools` or the health check. */
  listed(): string[] {
    return [...NAMES, ...(this.isShellEnabled ? [SHELL] : []), ...CONFIG_WEB];
  }

  /** What the plain API runs: the shell's gate covers MCP only. */
  plain(): string[] {
    return [...NAMES, SHELL];
  }

  async run(name: string, args: Json): Promise<BoardOutcome> {
    if (HID.includes(name)) return await this.#input(name, args);
    if (name === "screenshot" || name === "wait_for_stable_screen") return { output: screen({ ok: true }), image: jpeg(name) };
    if (name === "open_app") return BRIDGE_AWAY;
    if (name === "bridge_clipboard") return NOT_GRANTED;
    if (name === SHELL) return this.#shell(args);
    if (name === "support_bundle") return await this.#bundle();
    return { output: JSON.stringify({ ok: true, tool: name }) };
  }

  /** Runs on to its own end: the phone does what it was told, whether or not the caller is still there. */
  async #input(tool: string, args: Json): Promise<BoardOutcome> {
    const input = { tool, args, isDone: false };
    this.inputs.push(input);
    await pause(this.#options.hidMs ?? 20);
    input.isDone = true;
    if (args["text"] === "frozen") {
      const message = "the screenshot failed";
      const details = { action_completed: true };
      return { output: "", error: { category: "internal", code: "subtool_failed", message, details } };
    }
    return { output: screen({ action_output: "ok", screen_stable: true, stable_wait_ms: 740, screen_changed: true }), image: jpeg(tool) };
  }

  /** A command in the background is polled; it has more to say at the first two looks. */
  #shell({ action = "start", session_id: id, background, command }: Json): BoardOutcome {
    if (action === "start" && background !== true) return { output: JSON.stringify({ output: `${String(command)}\n`, exit_code: 0 }) };
    if (action === "start") {
      const session = `sh-${this.#shells.size + 1}`;
      this.#shells.set(session, 0);
      return { output: JSON.stringify({ session_id: session, status: "running" }) };
    }
    const polls = this.#shells.get(String(id));
    if (polls === undefined)
      return { output: "", error: { category: "invalid_input", code: "invalid_arguments", message: "no such session" } };
    this.#shells.set(String(id), polls + 1);
    const status = polls < 2 ? { status: "running" } : { status: "exited", exit_code: 0 };
    return { output: JSON.stringify({ session_id: id, output: `line ${polls + 1}\n`, ...status }) };
  }

  async #bundle(): Promise<BoardOutcome> {
    if (this.#isBundling) {
      return { output: "", error: { category: "transient", code: "tool_execution_failed", message: "support bundle already in progress" } };
    }
    this.#isBundling = true;
    await pause(this.#options.bundleMs ?? 20);
    this.#isBundling = false;
    return { output: "", bundle: Buffer.alloc(this.#options.bundleBytes ?? 1_000, "board").toString("base64") };
  }
}

const BRIDGE_AWAY: BoardOutcome = {
  output: "",
  error: {
    category: "precondition_failed",
    code: "bridge_not_connected",
    message: "phone bridge app is background and no supported return entry is available",
    details: { fallback: "Take a screenshot, then use visible search." },
  },
};
const NOT_GRANTED: BoardOutcome = {
  output: "",
  error: { category: "user_action_required", code: "permission_denied", message: "Clipboard access not granted" },
};

/** About the size of a real one: a portrait phone in a 1080-line frame. */
function jpeg(seed: string): string {
  return Buffer.concat([Buffer.from("ffd8ffe000104a464946", "hex"), Buffer.alloc(70_000, seed)]).toString("base64");
}

function screen(more: Json): string {
  return JSON.stringify({ ...more, width: 498, height: 1080, format: "jpeg", size: 70_010 });
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

function words(text: string): string[] {
  return text.trim().split(/\s+/);
}
