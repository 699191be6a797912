/**
 * The source text of a message's id and progress token: both go back exactly as they came (`1.0`, an escape), which a
 * parsed value has lost. Like JSON.parse, the last of several equal keys wins. Pure.
 */
import { EDGE } from "../limits.ts";
import { lastMember, scanElements, scanMembers, ScanError, valueOf } from "../tunnel/json-scan.ts";

/** Source text of one message's id and progress token; undefined for what is not there, or is an array or object. */
export interface SourceTexts {
  id: string | undefined;
  progressToken: string | undefined;
}

const NONE: SourceTexts = { id: undefined, progressToken: undefined };
const TOKEN = "progressToken";
const OPEN_OBJECT = 0x7b;
const OPEN_ARRAY = 0x5b;
const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: false, ignoreBOM: true });

/**
 * The texts of a body that JSON.parse has accepted: one entry for a single message, one for each element of an array.
 * Null when it is nested deeper than EDGE.maxJsonDepth.
 */
export function sourceTexts(text: string): SourceTexts[] | null {
  const bytes = encoder.encode(text.trimStart());
  // The outermost level is the body itself.
  const maxDepth = EDGE.maxJsonDepth - 1;
  // Most bodies have no token: without its name, and without an escape that could spell it, there is none to look for.
  const mayHaveToken = text.includes(TOKEN) || text.includes("\\u");
  try {
    if (bytes[0] !== OPEN_ARRAY) return [textsOf(bytes, maxDepth, mayHaveToken)];
    return scanElements(bytes, maxDepth).map(({ start, end }) => textsOf(bytes.subarray(start, end), maxDepth, mayHaveToken));
  } catch (error) {
    // The text is JSON, so the only thing left to object to is its depth.
    if (error instanceof ScanError) return null;
    throw error;
  }
}

function textsOf(message: Uint8Array, maxDepth: number, mayHaveToken: boolean): SourceTexts {
  if (message[0] !== OPEN_OBJECT) return NONE;
  const members = scanMembers(message, maxDepth);
  const id = lastMember(members, "id");
  const params = mayHaveToken ? lastMember(members, "params") : undefined;
  return {
    id: id === undefined ? undefined : scalarText(valueOf(message, id)),
    progressToken: params === undefined ? undefined : tokenText(valueOf(message, params)),
  };
}

function tokenText(params: Uint8Array): string | undefined {
  if (params[0] !== OPEN_OBJECT) return undefined;
  const meta = lastMember(scanMembers(params), "_meta");
  if (meta === undefined || params[meta.valueStart] !== OPEN_OBJECT) return undefined;
  const value = valueOf(params, meta);
  const token = lastMember(scanMembers(value), TOKEN);
  return token === undefined ? undefined : scalarText(valueOf(value, token));
}

function scalarText(value: Uint8Array): string | undefined {
  return value[0] === OPEN_OBJECT || value[0] === OPEN_ARRAY ? undefined : decoder.decode(value);
}
