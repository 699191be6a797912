/**
 * `input_required` of a modern upstream, for a caller that cannot answer it itself: its requests become asks, the
 * answers the extra members of the next round (MCP 2026-07-28, "Multi round-trip requests").
 */
import { joinCapabilities } from "../../policy/input-capabilities.ts";
import { failure, type AgentFailure } from "../failure.ts";
import { lastMember, parseValue, scanMembers, ScanError, valueOf } from "../../tunnel/json-scan.ts";
import { ASKING, isInputMethod } from "./in-flight.ts";
import { lackedBy } from "./lacking.ts";
import { oneLine } from "./params.ts";
import type { CallSink, InputMethod, UpstreamCall } from "./upstream.ts";

interface Question {
  key: string;
  method: InputMethod;
  params: Uint8Array;
}

/** What the next round needs: members for its params, or why there is none. */
export type Round = { kind: "next"; members: string[]; hasQuestions: boolean } | { kind: "failed"; failure: AgentFailure };

const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
const EMPTY = new TextEncoder().encode("{}");

/** True when the result asks for input. */
export function asksForInput(result: Uint8Array): boolean {
  const type = lastMember(scanMembers(result), "resultType");
  return type !== undefined && type.end - type.valueStart < 64 && parseValue(valueOf(result, type)) === "input_required";
}

/** Puts the questions of an `input_required` result to the caller and waits for all answers. */
export async function answerRound(call: UpstreamCall, sink: CallSink, result: Uint8Array): Promise<Round> {
  const read = readQuestions(result);
  if (!read || !ASKING.has(call.method)) return failed("The tool server asked for input in a way the protocol does not know.");
  const lacking = lackedIn(call, read.questions);
  if (lacking) return lacking;
  const answers = await Promise.all(
    read.questions.map(async (question) => ({ question, answer: await sink.ask(question.method, question.params) })),
  );
  const parts: string[] = [];
  for (const { question, answer } of answers) {
    if (answer.kind === "result") parts.push(`${JSON.stringify(question.key)}:${oneLine(answer.body)}`);
    // Only an elicitation has a form for "no answer"; without sampling or roots the tool cannot go on.
    else if (question.method === "elicitation/create") parts.push(`${JSON.stringify(question.key)}:{"action":"cancel"}`);
    else return { kind: "failed", failure: failure("cancelled", "unknown", `The client did not answer ${question.method}.`) };
  }
  const members = read.questions.length > 0 ? [`"inputResponses":{${parts.join(",")}}`] : [];
  if (read.state !== undefined) members.push(`"requestState":${read.state}`);
  return { kind: "next", members, hasQuestions: read.questions.length > 0 };
}

/** Why the caller cannot be asked, with what it would have to declare; null when it can. */
function lackedIn(call: UpstreamCall, questions: readonly Question[]): Round | null {
  let required: Record<string, unknown> | null = null;
  const methods = new Set<InputMethod>();
  for (const { method, params } of questions) {
    const lacked = lackedBy(call, method, params);
    if (lacked === null) continue;
    required = joinCapabilities(required ?? {}, lacked);
    methods.add(method);
  }
  if (required === null) return null;
  return failed(`The tool needs ${[...methods].join(" and ")} in a way that the client does not offer.`, {
    requiredCapabilities: required,
  });
}

function failed(message: string, data?: Record<string, unknown>): Round {
  return { kind: "failed", failure: failure("upstream_failed", "unknown", message, data) };
}

/** The questions, and the state as JSON text, exactly as it came. Null when neither is there or one is malformed. */
function readQuestions(result: Uint8Array): { questions: Question[]; state: string | undefined } | null {
  try {
    const members = scanMembers(result);
    const requests = lastMember(members, "inputRequests");
    const state = lastMember(members, "requestState");
    const questions = requests ? readMap(valueOf(result, requests)) : [];
    if (!questions || (questions.length === 0 && !state)) return null;
    return { questions, state: state && decoder.decode(valueOf(result, state)) };
  } catch (error) {
    if (error instanceof ScanError) return null;
    throw error;
  }
}

function readMap(map: Uint8Array): Question[] | null {
  const questions: Question[] = [];
  for (const entry of scanMembers(map)) {
    const value = valueOf(map, entry);
    const members = scanMembers(value);
    const methodMember = lastMember(members, "method");
    const method = methodMember && parseValue(valueOf(value, methodMember));
    if (typeof method !== "string" || !isInputMethod(method)) return null;
    const params = lastMember(members, "params");
    questions.push({ key: entry.key, method, params: params ? valueOf(value, params) : EMPTY });
  }
  return questions;
}
