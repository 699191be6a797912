/**
 * A request's params in canonical form: the target and `_meta` leave the payload for the frame header, so that what
 * is checked is what runs. Pure.
 */
import { isObject, type JsonObject, type RpcRequest } from "./json-rpc.ts";
import { metaOf, ownMeta, progressWish } from "./meta.ts";
import { MAX_TARGET, type MethodRule } from "./methods.ts";

export interface CallParams {
  target: string | undefined;
  ref: JsonObject | undefined;
  /** What remains, as a value; its text is the payload. */
  rest: JsonObject;
  meta: JsonObject | undefined;
  progress: boolean;
}
export type ReadParams = { ok: true; params: CallParams } | { ok: false; message: string };

/** Reads the params of a forwarded method; the message says what is wrong with them. */
export function readCallParams(message: RpcRequest, rule: MethodRule): ReadParams {
  const { params = {} } = message;
  if (!isObject(params)) return bad("The params must be an object.");
  const { name, uri, ref, _meta, ...rest } = params;
  if (_meta !== undefined && !isObject(_meta)) return bad('The member "_meta" must be an object.');
  const meta = metaOf(params);
  const progress = progressWish(meta);
  if (progress === "bad") return bad("The progress token must be a string or a number.");
  const target = rule.target === "name" ? name : rule.target === "uri" ? uri : undefined;
  if (rule.target !== undefined && (typeof target !== "string" || target.length > MAX_TARGET)) {
    return bad(`The param "${rule.target}" must be a string of at most ${MAX_TARGET} characters.`);
  }
  if (rule.ref === true && !isObject(ref)) return bad('The param "ref" must be an object.');
  return {
    ok: true,
    params: {
      target: typeof target === "string" ? target : undefined,
      ref: rule.ref === true && isObject(ref) ? ref : undefined,
      rest,
      meta: ownMeta(meta),
      progress: progress === "wanted",
    },
  };
}

function bad(message: string): ReadParams {
  return { ok: false, message };
}
