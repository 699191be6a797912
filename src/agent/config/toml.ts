/** Reads TOML into plain values and remembers on which line each of them stands. Pure. */
import { ParseError, parseTOML, type AST } from "toml-eslint-parser";

export type Path = readonly (string | number)[];

export interface TomlDocument {
  value: Record<string, unknown>;
  /** Line, from 1, of what is at a path, or of what is nearest around it. */
  lineOf(path: Path): number;
}

/** The text is not TOML. */
export class TomlSyntaxError extends Error {
  override readonly name = "TomlSyntaxError";
  readonly line: number;
  constructor(problem: string, line: number) {
    super(problem);
    this.line = line;
  }
}

/** Parses TOML 1.0. Throws TomlSyntaxError. */
export function readToml(text: string): TomlDocument {
  const reader = new Reader();
  for (const node of parse(text).body[0].body) {
    if (node.type === "TOMLTable") reader.table(node);
    else reader.keyValue(reader.value, [], node);
  }
  return { value: reader.value, lineOf: (path) => reader.lineOf(path) };
}

function parse(text: string): AST.TOMLProgram {
  try {
    return parseTOML(text, { tomlVersion: "1.0" });
  } catch (error) {
    if (!(error instanceof ParseError)) throw error;
    const line = error.column === 0 && isUnfinished(text, error.lineNumber - 1) ? error.lineNumber - 1 : error.lineNumber;
    throw new TomlSyntaxError(PROBLEMS.get(error.message) ?? "this is not TOML", line);
  }
}

/** What the parser notices most, by its own words. */
const PROBLEMS: ReadonlyMap<string, string> = new Map([
  ["Unterminated string constant", "the closing quote is missing"],
  ["Unterminated table-key", "the closing ] is missing"],
  ["Unterminated array", "the closing ] is missing"],
  ["Unterminated inline table", "the closing } is missing"],
  ["Unspecified values are invalid", "the value is missing"],
  ["Expected equal (=) token", "a key needs = and a value"],
  ["Expected comma (,) token", "a comma or a closing bracket is missing"],
  ["Defining a key multiple times is invalid", "this is given twice"],
  ["The key, equals sign, and value must be on the same line", "a key needs = and a value on the same line"],
  ["No newlines are allowed between the curly braces unless they are valid within a value", "a table in { } has to be on one line"],
  ["Trailing comma is not permitted in an inline table", "a comma may not stand before }"],
  ["Must be a newline", "something stands behind the value"],
  ["Unexpected character", "this is not TOML; texts need quotes"],
]);

/** The parser names the line on which it was sure; what is missing is missing on the one before. */
function isUnfinished(text: string, line: number): boolean {
  const before = text.split("\n")[line - 1];
  return before !== undefined && !/^\s*(?:#.*)?$|^\s*\[.*\]\s*(?:#.*)?$|=\s*\S/.test(before);
}

type Holder = Record<string, unknown>;

class Reader {
  readonly value: Holder = {};
  readonly #lines = new Map<string, number>();

  lineOf(path: Path): number {
    for (let length = path.length; length > 0; length -= 1) {
      const line = this.#lines.get(JSON.stringify(path.slice(0, length)));
      if (line !== undefined) return line;
    }
    return 1;
  }

  table(node: AST.TOMLTable): void {
    const line = node.loc.start.line;
    const holder = this.#descend(this.value, [], node.resolvedKey, line);
    this.#lines.set(JSON.stringify(node.resolvedKey), line);
    for (const member of node.body) this.keyValue(holder, node.resolvedKey, member);
  }

  keyValue(holder: Holder, path: Path, node: AST.TOMLKeyValue): void {
    const line = node.loc.start.line;
    const keys = node.key.keys.map((key) => (key.type === "TOMLBare" ? key.name : key.value));
    const last = keys.at(-1) ?? "";
    const inner = this.#descend(holder, path, keys.slice(0, -1), line);
    const at = [...path, ...keys];
    this.#lines.set(JSON.stringify(at), line);
    define(inner, last, this.#content(node.value, at));
  }

  #descend(from: Holder, path: Path, keys: Path, line: number): Holder {
    let holder = from;
    for (const [index, key] of keys.entries()) {
      const at = JSON.stringify([...path, ...keys.slice(0, index + 1)]);
      if (!this.#lines.has(at)) this.#lines.set(at, line);
      if (!Object.hasOwn(holder, key)) define(holder, String(key), typeof keys[index + 1] === "number" ? [] : {});
      // SAFETY: the parser has made sure that a table or list stands here.
      holder = holder[key] as Holder;
    }
    return holder;
  }

  #content(node: AST.TOMLContentNode, path: Path): unknown {
    this.#lines.set(JSON.stringify(path), node.loc.start.line);
    if (node.type === "TOMLArray") return node.elements.map((element, index) => this.#content(element, [...path, index]));
    if (node.type === "TOMLValue") return node.value;
    const table: Holder = {};
    for (const member of node.body) this.keyValue(table, path, member);
    return table;
  }
}

/** A key such as `__proto__` is a key like any other. */
function define(holder: Holder, key: string, value: unknown): void {
  Object.defineProperty(holder, key, { value, enumerable: true, configurable: true, writable: true });
}
