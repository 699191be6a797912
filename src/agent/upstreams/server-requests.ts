/**
 * Requests of a legacy upstream towards the client: put to the call they belong to, answered with what its client
 * says; refused at once when they belong to none (design section 6).
 */
import { RPC } from "../../errors.ts";
import { ASKING, isInputMethod, type InFlight, type Running } from "./in-flight.ts";
import { lackedBy, noteLacking } from "./lacking.ts";
import type { Lane, ServerRequest } from "./lane.ts";
import type { AskAnswer, InputMethod } from "./upstream.ts";

/** What clients answer when a person says no to sampling (MCP 2025-11-25, "Sampling", error handling). */
const REFUSED = `{"code":-1,"message":"The request was cancelled"}`;
const NO_OWNER = `{"code":${RPC.methodNotFound},"message":"No call in flight can answer this"}`;

export class ServerRequests {
  readonly #lane: Lane;
  readonly #open = new Map<string, AbortController>();

  constructor(lane: Lane) {
    this.#lane = lane;
  }

  /** A request that belongs to this call for certain. */
  take(request: ServerRequest, owner: Running): void {
    if (this.#answerOwn(request)) return;
    const { method } = request;
    if (!isInputMethod(method) || !ASKING.has(owner.call.method)) return this.refuse(request);
    const lacked = lackedBy(owner.call, method, request.params);
    if (lacked === null) void this.#ask(request, method, owner);
    else this.#lane.respond(request.id, "error", noteLacking(owner, method, lacked));
  }

  /** A request without a label. */
  takeFrom(request: ServerRequest, calls: InFlight): void {
    if (this.#answerOwn(request)) return;
    // With no call that declared it, the only one that can have asked hears what it lacks.
    const owner = isInputMethod(request.method) ? (calls.ownerOfRequest(request.method) ?? calls.onlyAsking()) : undefined;
    if (owner) this.take(request, owner);
    else this.refuse(request);
  }

  refuse(request: ServerRequest): void {
    if (!this.#answerOwn(request)) this.#lane.respond(request.id, "error", NO_OWNER);
  }

  /** The upstream takes a request back: nobody answers it. */
  withdraw(id: string): void {
    this.#open.get(id)?.abort();
    this.#open.delete(id);
  }

  #answerOwn(request: ServerRequest): boolean {
    if (request.method !== "ping") return false;
    this.#lane.respond(request.id, "result", "{}");
    return true;
  }

  async #ask(request: ServerRequest, method: InputMethod, owner: Running): Promise<void> {
    const withdrawal = new AbortController();
    this.#open.set(request.id, withdrawal);
    const answer = await owner.sink.ask(method, request.params, withdrawal.signal);
    if (withdrawal.signal.aborted) return;
    this.#open.delete(request.id);
    this.#respond(request.id, method, answer);
  }

  #respond(id: string, method: InputMethod, answer: AskAnswer): void {
    if (answer.kind !== "cancelled") this.#lane.respond(id, answer.kind, answer.body);
    else if (method === "elicitation/create") this.#lane.respond(id, "result", `{"action":"cancel"}`);
    else this.#lane.respond(id, "error", REFUSED);
  }
}
