/**
 * The four lists: forwarded while the device is online, filtered by grant, kept in the catalogue; answered from the
 * catalogue, and marked so, while the device is away or its upstream cannot answer (design section 6).
 */
import type { Failure, Reason } from "../src/errors.ts";
import { CATALOGUE } from "../src/limits.ts";
import { type ListSpec, visibleItems } from "../src/policy/decide.ts";
import { type Grant, isFull } from "../src/policy/grant.ts";
import { legacyTools } from "../src/policy/legacy-tools.ts";
import { encode, type Payload, payloadText } from "../src/tunnel/codec.ts";
import type { ClientFacts, Result } from "../src/tunnel/frames.ts";
import { cancelCall, endCall, grantCredit } from "./call-end.ts";
import { startCall, usableLink } from "./call-start.ts";
import type { Desk } from "./desk.ts";
import { type Collected, ListCollector } from "./list-collector.ts";
import type { PendingCall } from "./pending-calls.ts";
import type { CallReply } from "./rpc.ts";

/** Our `_meta` member on answers that come from the catalogue because the device is away. */
const OFFLINE_META = { "dev.longline/offline": true };
/** `protocol` of a result that no upstream was asked for. */
const FROM_CATALOGUE = "catalogue";

/** The device or its upstream cannot answer now; the catalogue can. */
const UNABLE: ReadonlySet<Reason> = new Set(["device_offline", "device_timeout", "tunnel_lost", "agent_restarted", "upstream_failed"]);

/** Answers a list for a call that is in the table. */
export async function answerList(desk: Desk, call: PendingCall, grant: Grant, spec: ListSpec, payload: Payload): Promise<CallReply> {
  const isWholeList = cursorOf(payload) === undefined;
  const client = call.request?.client;
  if ((await usableLink(desk)) === null && isWholeList) {
    endCall(desk, call);
    return fromCatalogue(desk, call.id, { grant, spec, client });
  }
  const sink = collect(desk, call);
  await startCall(desk, call);
  const collected = await sink.collected;
  if (collected.kind === "result") return fromDevice(desk, call.id, { grant, spec, isWholeList, client }, collected);
  const failure = collected.failure;
  if (failure !== null && UNABLE.has(failure.reason) && isWholeList && desk.catalogue.isKnown)
    return fromCatalogue(desk, call.id, { grant, spec, client });
  if (collected.kind === "error") return { ok: true, first: collected.message, rest: null };
  return { ok: false, refusal: { kind: "failure", failure: collected.failure } };
}

function collect(desk: Desk, call: PendingCall): ListCollector {
  const sink = new ListCollector({
    onRead: (bytes) => {
      desk.flow.read(call.id, bytes);
      grantCredit(desk, call);
    },
    onEnd: () => {
      endCall(desk, call);
    },
    onTooLarge: (size) => cancelCall(desk, call, "caller_left", beyond("bytes", size, CATALOGUE.maxBytes)),
  });
  call.sink = sink;
  return sink;
}

function cursorOf(payload: Payload): unknown {
  if (payload === "" || payload === "{}") return undefined;
  const params: unknown = JSON.parse(payloadText(payload));
  return typeof params === "object" && params !== null ? (params as Record<string, unknown>)["cursor"] : undefined;
}

interface Asked {
  grant: Grant;
  spec: ListSpec;
  isWholeList: boolean;
  client: ClientFacts | undefined;
}

function fromDevice(desk: Desk, callId: string, asked: Asked, { frame, text }: Extract<Collected, { kind: "result" }>): CallReply {
  const { spec } = asked;
  const result = parse(text);
  const items = result?.[spec.member];
  if (result === null || !Array.isArray(items)) {
    const message = "The tool server on the device sent a list that is not one.";
    return { ok: false, refusal: { kind: "failure", failure: { reason: "upstream_failed", outcome: "unknown", message } } };
  }
  if (spec.member === "tools" && items.length > CATALOGUE.maxTools) {
    return { ok: false, refusal: { kind: "failure", failure: beyond("tools", items.length, CATALOGUE.maxTools) } };
  }
  const isWhole = asked.isWholeList && result["nextCursor"] === undefined;
  if (isWhole && isNeutral(asked.client, frame.protocol) && desk.catalogue.replaceList(spec.member, items)) {
    desk.meta.set("catalogueDigest", null);
    desk.listChanges.answered(spec.member);
  }
  const shown = shownItems(desk, asked, items);
  // As the device wrote it, unless something had to be left out.
  return reply(callId, frame, shown === items ? text : JSON.stringify({ ...result, [spec.member]: shown }));
}

/** The items that a caller may see, as its era can take them; the same array when that is all of them. */
function shownItems(
  desk: Desk,
  { grant, spec, client }: Pick<Asked, "grant" | "spec" | "client">,
  items: readonly unknown[],
): readonly unknown[] {
  const visible = isFull(grant.rights) ? items : visibleItems(grant.rights, spec, items, desk.catalogue.prefixes);
  return spec.member === "tools" && client?.era === "legacy" ? legacyTools(visible) : visible;
}

/** A list that is over one of the catalogue's bounds, and what its owner can do. */
function beyond(unit: "tools" | "bytes", size: number, cap: number): Failure {
  const message = `The device lists ${size} ${unit} at once; at most ${cap} are carried. Let its server list in pages.`;
  return { reason: "too_large", outcome: "unknown", message, data: { size, cap } };
}

/**
 * Whether an answer holds for everybody. An upstream may list other things to a client with capabilities, and to one
 * whose grant has an instance of its own, as a handshake upstream gives it: such lists are their caller's alone.
 */
function isNeutral(client: ClientFacts | undefined, protocol: string): boolean {
  return client?.era === "modern" && client.protocol === protocol && Object.keys(client.capabilities).length === 0;
}

function parse(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : null;
  } catch {
    return null; // The caller says that the upstream failed.
  }
}

/** The list as last known; empty for a device that never sent a catalogue. */
function fromCatalogue(desk: Desk, callId: string, asked: Pick<Asked, "grant" | "spec" | "client">): CallReply {
  const { member } = asked.spec;
  const text = JSON.stringify({ [member]: shownItems(desk, asked, desk.catalogue.items(member) ?? []) });
  return reply(callId, { protocol: FROM_CATALOGUE, meta: OFFLINE_META }, text);
}

function reply(callId: string, lifted: Pick<Result, "protocol"> & Partial<Result>, text: string): CallReply {
  const { bytes: _announced, ...members } = lifted;
  return { ok: true, first: encode({ ...members, type: "result", callId, seq: 1 }, text), rest: null };
}
