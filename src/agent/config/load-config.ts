/** Reads a configuration file and everything it points to, into what the agent is started with. */
import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { CONFIG } from "../../limits.ts";
import type { LocalPolicy } from "../local-policy.ts";
import { builtinTools } from "../tools/builtin-tools.ts";
import type { DeclaredTool, FeedConfig, UpstreamConfig } from "../types.ts";
import { readConfig, type ConfigFile } from "./config-file.ts";
import type { ToolSection } from "./declared-section.ts";
import { ConfigError, located, type Finding } from "./mistakes.ts";
import type { Path } from "./toml.ts";
import type { UpstreamSection } from "./upstream-section.ts";

/** What a file asks for. */
export interface LoadedConfig {
  /** Tools of the agent's own first: of two with one name the first is offered. */
  upstreams: UpstreamConfig[];
  policy: LocalPolicy;
  /** What a person should know, such as built-in tools that do not work on this machine. */
  warnings: string[];
  /** Holds values that may be secret. */
  hasSecrets: boolean;
}

/** How files of headers are read: it knows about private files. Rejects with an Error whose message is public. */
export type ReadHeaders = (path: string) => Promise<Record<string, string>>;

const DECLARED_ALIAS = "declared";

/** Loads a file. Rejects with a ConfigError. */
export async function loadConfig(path: string, readHeaders: ReadHeaders): Promise<LoadedConfig> {
  const file = readConfig(await readText(path), path);
  const loader = new Loader(dirname(resolve(path)), readHeaders);
  const builtin = builtinTools(file.builtin);
  const declared = await Promise.all([...file.tools].map(async ([name, tool]) => await loader.tool(name, tool)));
  const feeds = await Promise.all([...file.feeds].map(async ([name, feed]) => await loader.feed(name, feed)));
  const servers = await Promise.all([...file.upstreams].map(async ([alias, section]) => await loader.upstream(alias, section)));
  loader.findings.push(
    ...sharedNames(
      file,
      builtin.tools.map(({ name }) => name),
    ),
  );
  if (loader.findings.length > 0) throw new ConfigError(path, located(file.document, loader.findings));
  const secrets = Object.values(file.builtin.shell?.env ?? {});
  const own: UpstreamConfig[] =
    builtin.tools.length === 0 ? [] : [{ kind: "builtin", alias: "builtin", tools: builtin.tools, settings: file.builtin, secrets }];
  return {
    upstreams: [...own, ...declared, ...feeds, ...servers],
    policy: file.policy,
    warnings: builtin.unavailable.map(({ tool, reason, advice }) => `builtin.${tool} does not work here: ${reason}; ${advice}`),
    hasSecrets: [...file.upstreams.values(), ...file.tools.values(), file.builtin.shell].some((section) => section?.env !== undefined),
  };
}

async function readText(path: string): Promise<string> {
  const broken = (text: string) => new ConfigError(path, [{ path: [], line: 1, text }]);
  const bytes = await readFile(path).catch((error: unknown) => {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    throw broken(code === "ENOENT" ? "the file does not exist" : "the file cannot be read");
  });
  if (bytes.length > CONFIG.maxBytes) throw broken(`the file is larger than ${CONFIG.maxBytes} bytes`);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw broken("the file is not UTF-8");
  }
}

/** A built-in tool and a declared one may not share a name. */
function sharedNames(file: ConfigFile, builtin: readonly string[]): Finding[] {
  return [...file.tools.keys()]
    .filter((name) => builtin.includes(name))
    .map((name) => ({
      path: ["tools", name],
      text: `is a tool of [builtin] too: rename tools.${name}, or leave the one of [builtin] out`,
    }));
}

class Loader {
  readonly findings: Finding[] = [];
  readonly #directory: string;
  readonly #readHeaders: ReadHeaders;

  constructor(directory: string, readHeaders: ReadHeaders) {
    this.#directory = directory;
    this.#readHeaders = readHeaders;
  }

  async upstream(alias: string, section: UpstreamSection): Promise<UpstreamConfig> {
    const { command, env, cwd, url, headersFile, prefix, resourcePrefix, isolation } = section;
    const common = defined({ prefix, resourcePrefix, isolation });
    if (url !== undefined)
      return {
        kind: "http",
        alias,
        url: new URL(url),
        ...defined({ headers: await this.#headers(["upstreams", alias], headersFile) }),
        ...common,
      };
    const [program = "", ...args] = command ?? [];
    return { kind: "stdio", alias, command: this.#program(program), args, ...defined({ env, cwd: this.#path(cwd) }), ...common };
  }

  async feed(name: string, section: ConfigFile["feeds"] extends ReadonlyMap<string, infer Feed> ? Feed : never): Promise<FeedConfig> {
    const { url, uri, title, description, headersFile, hello } = section;
    const headers = await this.#headers(["feeds", name], headersFile);
    // A feed and a server of the same device may well have one name.
    return { kind: "feed", alias: `feeds.${name}`, url: new URL(url), uri, ...defined({ title, description, headers, hello }) };
  }

  async tool(name: string, section: ToolSection): Promise<UpstreamConfig> {
    const { title, description, inputSchema, outputSchema, annotations, result, timeoutSeconds, maxOutputBytes } = section;
    const tool: DeclaredTool = {
      name,
      description,
      inputSchema,
      ...defined({ title, outputSchema, annotations }),
      run: await this.#run(name, section),
      result: { kind: outputSchema ? "structured" : "text", ...defined({ ...result }) },
      timeoutMs: timeoutSeconds * 1_000,
      maxOutputBytes,
    };
    return { kind: "declared", alias: DECLARED_ALIAS, tool };
  }

  async #run(name: string, { command, stdin, env, cwd, request }: ToolSection): Promise<DeclaredTool["run"]> {
    if (!request) {
      const [program = "", ...args] = command ?? [];
      return { kind: "command", command: [this.#program(program), ...args], ...defined({ stdin, env, cwd: this.#path(cwd) }) };
    }
    const { method, url, body, headersFile } = request;
    const headers = await this.#headers(["tools", name, "request"], headersFile);
    return { kind: "request", method, url, body: bodyOf(method, body), ...defined({ headers }) };
  }

  async #headers(at: Path, file: string | undefined): Promise<Record<string, string> | undefined> {
    const path = this.#path(file);
    if (path === undefined) return undefined;
    try {
      return await this.#readHeaders(path);
    } catch (error) {
      this.findings.push({ path: [...at, "headersFile"], text: error instanceof Error ? error.message : "cannot be read" });
      return undefined;
    }
  }

  /** Paths are relative to the file that names them. */
  #path(path: string | undefined): string | undefined {
    if (path === undefined) return undefined;
    return resolve(this.#directory, path.startsWith("~/") ? join(homedir(), path.slice(2)) : path);
  }

  /** A program without a path is looked up; one with a path is relative to the file. */
  #program(program: string): string {
    return program.startsWith("./") || program.startsWith("../") || program.startsWith("~/") ? (this.#path(program) ?? program) : program;
  }
}

function bodyOf(method: string, body: unknown): Extract<DeclaredTool["run"], { kind: "request" }>["body"] {
  if (body === "json" || body === "form" || body === "none") return body;
  if (body === undefined) return method === "GET" || method === "DELETE" ? "none" : "json";
  return { template: body };
}

/** Without members that are undefined. */
function defined<T extends object>(value: T): { [Key in keyof T]?: Exclude<T[Key], undefined> } {
  // SAFETY: what is undefined is exactly what is left out.
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined)) as {
    [Key in keyof T]?: Exclude<T[Key], undefined>;
  };
}
