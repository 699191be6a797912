/** Checks of an `input_required` result that a modern device sent itself (MCP 2026-07-28, MRTR). Pure. */
import { RPC } from "../errors.ts";
import { joinCapabilities, missingCapability } from "../policy/input-capabilities.ts";
import { errorAnswer, type Answer } from "./answer.ts";
import { isObject, type JsonObject } from "./json-rpc.ts";
import type { Shape } from "./shape.ts";

/** -32021 with what is missing: nothing is asked that the caller did not declare. `upstream` is what the tool said of it. */
export function missingCapabilityAnswer(idText: string, required: JsonObject, upstream?: unknown): Answer {
  return errorAnswer(400, idText, RPC.missingCapability, "The tool needs input that this client cannot be asked for.", {
    requiredCapabilities: required,
    ...(upstream === undefined ? {} : { upstream }),
  });
}

/** What is wrong with the result, as an answer in its place; null when it may pass as it is. */
export function checkInputRequired(shape: Shape, payload: string): Answer | null {
  const broken = errorAnswer(200, shape.idText, RPC.internalError, "The device asked for input in a way that cannot be answered.");
  let result: unknown;
  try {
    result = JSON.parse(payload);
  } catch {
    return broken;
  }
  if (!isObject(result)) return broken;
  const { inputRequests, requestState } = result;
  if (inputRequests === undefined) return typeof requestState === "string" ? null : broken;
  if (!isObject(inputRequests)) return broken;
  let required: JsonObject | null = null;
  for (const request of Object.values(inputRequests)) {
    if (!isObject(request) || typeof request["method"] !== "string") return broken;
    const missing = missingCapability(shape.capabilities, request["method"], request["params"]);
    if (missing !== null) required = joinCapabilities(required ?? {}, missing);
  }
  return required === null ? null : missingCapabilityAnswer(shape.idText, required);
}
