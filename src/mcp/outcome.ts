/**
 * A result frame as the bytes of one JSON-RPC response. Era members come from the frame header and are spliced in
 * front of the payload, which is never parsed (an `input_required` result is the small exception). Pure.
 */
import { RPC } from "../errors.ts";
import type { Result } from "../tunnel/frames.ts";
import { errorAnswer, type Answer } from "./answer.ts";
import { checkInputRequired } from "./input-required.ts";
import { META } from "./meta.ts";
import type { Shape } from "./shape.ts";
import { cutBytes, cutText, NotAnObjectError, oneLine, spliceBytes, spliceText } from "./splice.ts";

const encoder = new TextEncoder();

/** The result's payload: whole, or in pieces as chunks come. */
export type ResultPayload = string | AsyncIterable<Uint8Array>;

/** The answer for a device's result. */
export function resultFrameAnswer(shape: Shape, frame: Result, payload: ResultPayload): Answer {
  const type = frame.resultType ?? "complete";
  if (type === "input_required" && shape.era === "modern" && shape.rule.input === true && typeof payload === "string") {
    const problem = checkInputRequired(shape, payload);
    if (problem !== null) return problem;
  } else if (type !== "complete") {
    // An extension's result type that nobody negotiated, or one its method may not have (MCP 2026-07-28, MRTR).
    return errorAnswer(200, shape.idText, RPC.internalError, "The device answered with a kind of result this request cannot have.");
  }
  const isModern = shape.era === "modern" || shape.isModernSession === true;
  const members = isModern ? modernMembers(shape, frame, type) : legacyMembers(frame);
  const head = `{"jsonrpc":"2.0","id":${shape.idText},"result":`;
  const cut = isModern ? undefined : frame.structuredAt;
  if (typeof payload !== "string") {
    const source = cut === undefined ? payload : cutBytes(payload, cut);
    return { status: 200, body: framed(head, spliceBytes(members, source)) };
  }
  try {
    const text = cut === undefined ? payload : cutText(payload, cut);
    return { status: 200, body: `${head}${oneLine(spliceText(members, text))}}` };
  } catch (error) {
    if (!(error instanceof NotAnObjectError)) throw error;
    return errorAnswer(200, shape.idText, RPC.internalError, "The device answered with something that is not a result.");
  }
}

async function* framed(head: string, inner: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, void> {
  yield encoder.encode(head);
  yield* inner;
  yield encoder.encode("}");
}

/** Lists are cut to the grant, so they are never public and stale at once; a read resource keeps the device's own time. */
function modernMembers(shape: Shape, frame: Result, type: string): string {
  const members = [`"resultType":${JSON.stringify(type)}`];
  if (shape.rule.cacheable === true && type === "complete") {
    const isList = shape.rule.target === undefined;
    const ttl = frame.ttlMs;
    const ttlMs = !isList && typeof ttl === "number" && Number.isSafeInteger(ttl) && ttl >= 0 ? ttl : 0;
    members.push(`"ttlMs":${ttlMs},"cacheScope":"private"`);
  }
  if (frame.meta !== undefined) members.push(`"_meta":${JSON.stringify(frame.meta)}`);
  return members.join(",");
}

/** Legacy results have no era members; the stateless revision's identity key goes too. */
function legacyMembers(frame: Result): string {
  if (frame.meta === undefined) return "";
  const entries = Object.entries(frame.meta).filter(([key]) => key !== META.serverInfo);
  return entries.length === 0 ? "" : `"_meta":${JSON.stringify(Object.fromEntries(entries))}`;
}
