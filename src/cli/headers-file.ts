/** Reads a file of HTTP headers: the credentials of an upstream, kept off the command line. */
import { readFile } from "node:fs/promises";
import { z } from "zod";
import { ApiError } from "../errors.ts";
import { isNotFound, isOpenToOthers } from "../serve/secret-file.ts";

// RFC 9110 §5.6.2 (token) and §5.5 (field values: no control characters).
const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
/** Set by the agent's own HTTP client; a second value would contradict it. */
const RESERVED = /^(?:host|connection|content-length|content-type|transfer-encoding|accept|mcp-.*)$/i;

const JsonHeaders = z.record(z.string(), z.string());

/** Reads a secret from a file that should be for its owner only; warns when it is not. */
export async function readSecretText(path: string, warn: (text: string) => void): Promise<string> {
  const text = await readFile(path, "utf8").catch((error: unknown) => {
    throw new ApiError("bad_request", isNotFound(error) ? `${path} does not exist.` : `${path} cannot be read.`);
  });
  if (await isOpenToOthers(path)) warn(`Other users of this machine can read ${path}. Close it with: chmod 600 ${path}`);
  return text;
}

/** Parses `Name: value` lines (blank lines and `#` comments are skipped) or one JSON object. Errors never show a value. */
export function parseHeaders(text: string): Record<string, string> {
  const pairs = text.trimStart().startsWith("{") ? jsonPairs(text) : linePairs(text);
  const seen = new Set<string>();
  for (const [name, value] of pairs) {
    if (!NAME.test(name) || !VALUE.test(value)) throw badHeaders("a name or value holds a character that HTTP does not allow");
    if (RESERVED.test(name)) throw badHeaders(`the agent sets ${name} itself`);
    if (seen.has(name.toLowerCase())) throw badHeaders(`${name} is given twice`);
    seen.add(name.toLowerCase());
  }
  return Object.fromEntries(pairs);
}

function jsonPairs(text: string): [string, string][] {
  try {
    return Object.entries(JsonHeaders.parse(JSON.parse(text)));
  } catch {
    // The parser's own message quotes the text, which holds secrets.
    throw badHeaders("it is not a JSON object of strings");
  }
}

function linePairs(text: string): [string, string][] {
  return text.split(/\r?\n/).flatMap((line, index): [string, string][] => {
    if (line.trim() === "" || line.trimStart().startsWith("#")) return [];
    const colon = line.indexOf(":");
    if (colon < 1) throw badHeaders(`line ${index + 1} is not "Name: value"`);
    return [[line.slice(0, colon).trim(), line.slice(colon + 1).trim()]];
  });
}

function badHeaders(why: string): ApiError {
  return new ApiError("bad_request", `The headers file cannot be used: ${why}.`);
}
