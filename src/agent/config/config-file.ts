/** The configuration file as a whole: its sections, and what may not stand beside each other. Pure. */
import { checkTool } from "./check-tool.ts";
import { ToolSection } from "./declared-section.ts";
import { FeedSection } from "./feed-section.ts";
import { ConfigError, located, readSection, unknownKey, type Finding } from "./mistakes.ts";
import { ALIAS, TOOL_NAME } from "./names.ts";
import { PolicySection } from "./policy-section.ts";
import { readToml, TomlSyntaxError, type TomlDocument } from "./toml.ts";
import { ToolsSection } from "./tools-section.ts";
import { checkUpstream, UpstreamSection } from "./upstream-section.ts";
import type { z } from "zod";

/** What a file says, checked. Maps are in the order of the file. */
export interface ConfigFile {
  upstreams: ReadonlyMap<string, UpstreamSection>;
  tools: ReadonlyMap<string, ToolSection>;
  feeds: ReadonlyMap<string, FeedSection>;
  policy: PolicySection;
  builtin: ToolsSection;
  document: TomlDocument;
}

/** Aliases of what the agent itself adds. */
const RESERVED = new Set(["builtin", "declared"]);
const SECTIONS = ["upstreams", "tools", "feeds", "policy", "builtin"];

/** Reads the text of a file; `name` is what it is called in messages. Throws ConfigError with all mistakes. */
export function readConfig(text: string, name: string): ConfigFile {
  const document = parse(text, name);
  const findings: Finding[] = Object.keys(document.value)
    .filter((key) => !SECTIONS.includes(key))
    .map((key) => unknownKey([key], SECTIONS));
  const alias = (key: string) =>
    RESERVED.has(key) ? "is a name that the agent uses itself" : ALIAS.test(key) ? null : "may hold letters, digits, _ and - only";
  const toolName = (key: string) => (TOOL_NAME.test(key) ? null : "is no name of a tool: letters, digits, _ . and - only");
  const file: ConfigFile = {
    upstreams: readEntries(document, "upstreams", { schema: UpstreamSection, check: checkUpstream, nameProblem: alias }, findings),
    tools: readEntries(document, "tools", { schema: ToolSection, check: checkTool, nameProblem: toolName }, findings),
    feeds: readEntries(document, "feeds", { schema: FeedSection, check: checkHello, nameProblem: alias }, findings),
    policy: readWhole(document, "policy", PolicySection, findings) ?? PolicySection.parse({}),
    builtin: readWhole(document, "builtin", ToolsSection, findings) ?? {},
    document,
  };
  findings.push(...checkAddresses(file.feeds));
  if (findings.length > 0) throw new ConfigError(name, located(document, findings));
  return file;
}

function parse(text: string, name: string): TomlDocument {
  try {
    return readToml(text);
  } catch (error) {
    if (!(error instanceof TomlSyntaxError)) throw error;
    throw new ConfigError(name, [{ path: [], line: error.line, text: error.message }]);
  }
}

interface EntryKind<T> {
  schema: z.ZodType<T>;
  check(value: T): Finding[];
  nameProblem(key: string): string | null;
}

/** The entries of a section that can be used; what is wrong with others goes into `findings`. */
function readEntries<T>(document: TomlDocument, section: string, kind: EntryKind<T>, findings: Finding[]): Map<string, T> {
  const entries = new Map<string, T>();
  const table = document.value[section];
  if (table === undefined) return entries;
  if (!isTable(table)) {
    findings.push({ path: [section], text: `must be tables, as in [${section}.NAME]` });
    return entries;
  }
  for (const [key, value] of Object.entries(table)) {
    const at = [section, key];
    const problem = kind.nameProblem(key);
    if (problem !== null) findings.push({ path: at, text: problem });
    const read = readSection(kind.schema, value, at);
    const found = read.ok ? kind.check(read.value).map(({ path, text }) => ({ path: [...at, ...path], text })) : read.findings;
    findings.push(...found);
    if (read.ok) entries.set(key, read.value);
  }
  return entries;
}

function readWhole<T>(document: TomlDocument, section: string, schema: z.ZodType<T>, findings: Finding[]): T | undefined {
  const value = document.value[section];
  if (value === undefined) return undefined;
  const read = readSection(schema, value, [section]);
  if (read.ok) return read.value;
  findings.push(...read.findings);
  return undefined;
}

/** A stream of server-sent events goes one way. */
function checkHello({ url, hello }: FeedSection): Finding[] {
  return hello === undefined || /^wss?:/.test(url) ? [] : [{ path: ["hello"], text: "is for ws and wss: server-sent events go one way" }];
}

/** Two feeds cannot be one resource. */
function checkAddresses(feeds: ReadonlyMap<string, FeedSection>): Finding[] {
  const first = new Map<string, string>();
  const findings: Finding[] = [];
  for (const [name, { uri }] of feeds) {
    const other = first.get(uri);
    if (other === undefined) first.set(uri, name);
    else findings.push({ path: ["feeds", name, "uri"], text: `is the uri of feeds.${other} too` });
  }
  return findings;
}

function isTable(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Date);
}
