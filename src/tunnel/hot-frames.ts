/**
 * The frames of the call path, checked by hand: zod takes more time for one of them than everything else the tunnel
 * does for a small call. `frames.ts` stays the definition; a property test holds both equal. Pure.
 */
import { CallIdPattern, CATALOGUE_STREAM } from "./frames.ts";

type Check = (value: unknown) => boolean;
interface Shape {
  required: readonly string[];
  members: ReadonlyMap<string, Check>;
}

const isCallId: Check = (value) => typeof value === "string" && CallIdPattern.test(value);
const isStream: Check = (value) => value === CATALOGUE_STREAM || isCallId(value);
const isCount: Check = (value) => Number.isSafeInteger(value) && (value as number) >= 0;
const isPositive: Check = (value) => Number.isSafeInteger(value) && (value as number) > 0;
const isShort: Check = (value) => typeof value === "string" && value.length <= 256;
const isTarget: Check = (value) => typeof value === "string" && value.length <= 8192;
const isTrue: Check = (value) => value === true;
const isBoolean: Check = (value) => typeof value === "boolean";
const isAnything: Check = () => true;
/** A member named `__proto__` is left to the schema, which drops it. */
const isObject: Check = (value) =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !Object.hasOwn(value, "__proto__");
const isOneOf = (texts: readonly string[]): Check => {
  const known: ReadonlySet<unknown> = new Set(texts);
  return (value) => known.has(value);
};
const isTexts: Check = (value) => isObject(value) && Object.values(value as object).every((text) => typeof text === "string");
const isNames: Check = (value) => Array.isArray(value) && value.length <= 100 && value.every(isTarget);
const isCallIds: Check = (value) => Array.isArray(value) && value.length >= 1 && value.length <= 1000 && value.every(isCallId);

/** A strict object: every member known, none missing. `?` marks a member that may be absent. */
function shape(members: Readonly<Record<string, Check>>): Shape {
  const entries = Object.entries(members).map(([name, check]) => [name.replace("?", ""), check] as const);
  return { required: Object.keys(members).filter((name) => !name.endsWith("?")), members: new Map(entries) };
}

function fits({ required, members }: Shape, value: Readonly<Record<string, unknown>>): boolean {
  for (const name of Object.keys(value)) if (members.get(name)?.(value[name]) !== true) return false;
  for (const name of required) if (!Object.hasOwn(value, name)) return false;
  return true;
}

const within = (inner: Shape): Check => {
  return (value) => isObject(value) && fits(inner, value as Record<string, unknown>);
};
const frame = (members: Readonly<Record<string, Check>>): Shape => shape({ type: isAnything, "optional?": isTrue, ...members });

const CREDIT = frame({ stream: isStream, bytes: isPositive, "offset?": isPositive });
const CHUNK = frame({ stream: isStream, offset: isCount });

const AGENT: ReadonlyMap<unknown, Shape> = new Map([
  ["ack", frame({ callId: isCallId })],
  ["event", frame({ callId: isCallId, seq: isPositive, method: isOneOf(["notifications/progress", "notifications/message"]) })],
  [
    "result",
    frame({
      callId: isCallId,
      seq: isPositive,
      protocol: isShort,
      "bytes?": isCount,
      "meta?": isObject,
      "resultType?": isShort,
      "ttlMs?": isAnything,
      "cacheScope?": isAnything,
      "structuredAt?": isCount,
    }),
  ],
  ["chunk", CHUNK],
  ["credit", CREDIT],
]);

const RELAY: ReadonlyMap<unknown, Shape> = new Map([
  [
    "call",
    frame({
      callId: isCallId,
      method: isShort,
      "target?": isTarget,
      "ref?": isObject,
      "names?": isNames,
      timeoutMs: isPositive,
      credit: isCount,
      caller: within(shape({ grant: isShort, label: isShort, member: isShort })),
      client: within(shape({ era: isOneOf(["modern", "legacy"]), protocol: isShort, capabilities: isObject, "info?": isObject })),
      "meta?": isObject,
      "progress?": isBoolean,
      "logLevel?": isShort,
      "paramHeaders?": isTexts,
      "bytes?": isCount,
    }),
  ],
  ["delivered", frame({ callIds: isCallIds })],
  ["chunk", CHUNK],
  ["credit", CREDIT],
]);

/** True for a frame of an agent that certainly fits its schema. False says nothing: ask the schema. */
export function isHotAgentFrame(value: Readonly<Record<string, unknown>>): boolean {
  const known = AGENT.get(value["type"]);
  return known !== undefined && fits(known, value);
}

/** True for a frame of a relay that certainly fits its schema. False says nothing: ask the schema. */
export function isHotRelayFrame(value: Readonly<Record<string, unknown>>): boolean {
  const known = RELAY.get(value["type"]);
  return known !== undefined && fits(known, value);
}
