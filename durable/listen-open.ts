/**
 * A listener's beginning: the upgrade that the Worker makes for a caller it has authenticated, checked like any other
 * request, and answered by a socket or by a refusal as JSON. What it gets is told in the first message.
 */
import { GRANT } from "../src/limits.ts";
import type { Grant } from "../src/policy/grant.ts";
import { coversResource } from "../src/policy/other-names.ts";
import { covers } from "../src/policy/decide.ts";
import { LIST_KINDS, LISTEN_CLOSE, LISTEN_HEADER, LISTEN_PATH, ListenFacts, type ListKind } from "../src/tunnel/notices.ts";
import { checkSession, findGrant, rateLimited } from "./call-admission.ts";
import type { Desk } from "./desk.ts";
import { viewDevice } from "./device-view.ts";
import { refusedByStop } from "./drain.ts";
import { acceptListener, closeListeners, type Listener, type ListenerAttachment, listeners, tellListener } from "./listener-sockets.ts";
import { offerOf, ownerOf } from "./listeners.ts";
import type { Refusal } from "./rpc.ts";

/** ms a caller with too many listeners is told to wait. */
const RETRY_MS = 1_000;

/** Whether a request is the upgrade of a listener. */
export function isListenRequest(request: Request): boolean {
  return new URL(request.url).pathname === LISTEN_PATH && request.headers.get("Upgrade")?.toLowerCase() === "websocket";
}

/** Answers the upgrade: 101 with the socket, or a refusal as JSON. `desk` is null when the device was never there. */
export async function answerListener(desk: Desk | null, request: Request): Promise<Response> {
  const facts = readFacts(request.headers.get(LISTEN_HEADER));
  if (facts === null) return new Response(null, { status: 400 });
  if (desk === null) return refuse(facts.session === undefined ? { kind: "method" } : { kind: "session", why: "unknown" });
  const grant = await findGrant(desk, facts.grant);
  if (grant === undefined) return refuse({ kind: "grant" });
  const stops = refusedByStop(desk);
  if (stops !== null) return refuse(stops);
  const plan = await planListener(desk, grant, facts);
  if ("kind" in plan) return refuse(plan);
  const { 0: client, 1: server } = new WebSocketPair();
  const listener: Listener = { socket: server, facts: plan.attachment };
  // One stream of a session gets each message: the newer one, as the older may be a connection that nobody holds any more.
  const { session } = plan.attachment;
  if (session !== undefined) closeListeners(listeners(desk.ctx, { session }), LISTEN_CLOSE.superseded, "another stream took over");
  acceptListener(desk.ctx, server, plan.attachment);
  const owner = ownerOf(plan.attachment);
  for (const uri of plan.resources) desk.subscriptions.add(owner, uri);
  await subscribe(desk, owner, grant);
  if (server.readyState !== WebSocket.OPEN) return refuse({ kind: "grant" }); // Ended while the device was asked.
  begin(desk, listener, owner, facts);
  return new Response(null, { status: 101, webSocket: client });
}

function refuse(refusal: Refusal): Response {
  return Response.json({ ok: false, refusal });
}

interface Plan {
  attachment: ListenerAttachment;
  resources: string[];
}

async function planListener(desk: Desk, grant: Grant, facts: ListenFacts): Promise<Plan | Refusal> {
  const { filter, session } = facts;
  if (session !== undefined) {
    const { id, headerVersion, strict } = session;
    const use = { id, ...(headerVersion === undefined ? {} : { headerVersion }), ...(strict === undefined ? {} : { strict }) };
    const checked = checkSession(desk, grant.id, use);
    if (!checked.ok) return checked.refusal;
  }
  const mine = listeners(desk.ctx, { grant: grant.id }).filter((other) => session === undefined || other.facts.session !== session.id);
  if (mine.length >= grant.caps.listeners) return tooMany(grant.caps.listeners);
  const attachment = { v: 1, role: "listener", id: crypto.randomUUID(), grant: grant.id, isOpen: false } as const;
  if (session !== undefined) {
    const lists = LIST_KINDS.filter((kind) => covers(grant.rights, kind));
    return { attachment: { ...attachment, lists, session: session.id }, resources: [] };
  }
  const offer = offerOf(grant.rights, (await viewDevice(desk, grant)).capabilities);
  if (offer.lists.length === 0 && !offer.resources) return { kind: "method" };
  const lists: ListKind[] = offer.lists.filter((kind) => filter?.lists.includes(kind) === true);
  const asked = offer.resources ? (filter?.resources ?? []) : [];
  return {
    attachment: { ...attachment, lists },
    resources: asked.filter((uri) => coversResource(grant.rights, desk.catalogue.prefixes, uri)),
  };
}

function tooMany(max: number): Refusal {
  const refusal = rateLimited(RETRY_MS);
  const message = `This access token has ${max} listeners open, which is its limit${max === GRANT.listeners ? "" : " as its owner set it"}. Close one, then listen again.`;
  return refusal.kind === "failure" ? { kind: "failure", failure: { ...refusal.failure, message } } : refusal;
}

/** Has the device asked for what the listener wants. What an upstream refuses a modern listener does not get. */
async function subscribe(desk: Desk, owner: string, grant: Grant): Promise<void> {
  const uris = desk.subscriptions.of(owner).filter((uri) => coversResource(grant.rights, desk.catalogue.prefixes, uri));
  const taken = await Promise.all(uris.map(async (uri) => ({ uri, taken: await desk.upstreamResources.want({ grant: grant.id, uri }) })));
  for (const { uri, taken: answer } of taken) if (answer.kind === "refused") desk.subscriptions.remove(owner, uri);
}

/** From here on notices go out; first what the listener gets, then what it missed since it lost its object. */
function begin(desk: Desk, { socket, facts }: Listener, owner: string, { seen }: ListenFacts): void {
  const open: Listener = { socket, facts: { ...facts, isOpen: true } };
  socket.serializeAttachment(open.facts);
  const versions = desk.listeners.versions();
  tellListener(open, { type: "open", lists: facts.lists, resources: desk.subscriptions.of(owner), versions });
  if (refusedByStop(desk) !== null) tellListener(open, { type: "end" }); // The others were told while the device was asked.
  if (seen === undefined) return;
  for (const what of facts.lists) if (versions[what] > seen[what]) tellListener(open, { type: "list", what, version: versions[what] });
}

function readFacts(header: string | null): ListenFacts | null {
  try {
    const parsed = ListenFacts.safeParse(JSON.parse(header ?? "null"));
    return parsed.success ? parsed.data : null;
  } catch {
    return null; // Not JSON: the Worker made the header, so this is a bug there, answered with 400.
  }
}
