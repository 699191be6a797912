/** What the edge knows about one authenticated HTTP request. Made by the route; everything below it is platform-free. */
import type { Switches } from "./classify.ts";
import type { DeliveredIds } from "./delivered.ts";
import type { RequestHeaders } from "./headers.ts";
import type { TunnelAccess } from "./tunnel-access.ts";

export interface EdgeContext {
  request: Request;
  headers: RequestHeaders;
  /** Grant id of the verified token. */
  grant: string;
  /** The device's immutable id. */
  deviceId: string;
  access: TunnelAccess;
  /** False while the device never connected: it has no object, so no sessions either. */
  isBorn: boolean;
  canStream: boolean;
  keepAliveMs: number;
  switches: Switches;
  /** Shared by all requests of this isolate. */
  delivered: DeliveredIds;
  waitUntil(work: Promise<unknown>): void;
  /** Seals a text for this device; opens only what was sealed for it. `unseal` rejects on anything else. */
  seal(text: string): Promise<string>;
  unseal(sealed: string): Promise<string>;
  /** The 401 there is. */
  unauthorised(): Response;
  /** 403 with the scopes a call needs; `body` is a JSON-RPC error. */
  insufficientScope(scopes: readonly string[], body: string): Response;
  /** Epoch ms. */
  now(): number;
}
