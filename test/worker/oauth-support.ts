/** An OAuth client by hand: each step of the flow as a function, so that tests can bend one at a time. */
import { env } from "cloudflare:workers";
import { base64url } from "jose";
import { expect } from "vitest";
import { markBorn } from "../../src/db/devices.ts";
import { addDevice, type NewDevice, ORIGIN, type Relay, startRelay, tokenFor } from "./api-support.ts";
import { type Browser, signedIn } from "./web-support.ts";

export const CALLBACK = "https://app.example/callback";
export const TOOLS = ["screenshot", "touch", "shell"].map((name) => ({
  name,
  readOnly: name === "screenshot",
  destructive: name === "shell",
}));

export interface Flow {
  relay: Relay;
  device: NewDevice;
  /** The owner's browser, signed in. */
  owner: Browser;
}

export interface Tokens {
  access_token: string;
  refresh_token: string;
  token_type: string;
  expires_in: number;
  scope: string;
  resource: string;
}

/** A relay with a born device and a signed-in owner. */
export async function startFlow(): Promise<Flow> {
  const relay = await startRelay();
  relay.objects.tools = TOOLS;
  const device = await addDevice(relay);
  await markBorn(env.DB, device.id, Date.now());
  return { relay, device, owner: await signedIn(relay, await tokenFor("owner")) };
}

/** Registers a client; gives the whole answer. */
export function register(relay: Relay, metadata: Record<string, unknown> = {}): Promise<Response> {
  return relay.send("/oauth/register", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ client_name: "Test Client", redirect_uris: [CALLBACK], token_endpoint_auth_method: "none", ...metadata }),
  });
}

/** Registers a public client; gives its id. */
export async function publicClient(relay: Relay, metadata: Record<string, unknown> = {}): Promise<string> {
  const response = await register(relay, metadata);
  expect(response.status).toBe(201);
  return (await response.json<{ client_id: string }>()).client_id;
}

export interface Pkce {
  verifier: string;
  challenge: string;
}

/** A new PKCE pair. */
export async function pkce(): Promise<Pkce> {
  const verifier = base64url.encode(crypto.getRandomValues(new Uint8Array(32)));
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier));
  return { verifier, challenge: base64url.encode(new Uint8Array(digest)) };
}

/** The path of an authorization request; an undefined member is left out. */
export function authorizePath(flow: Flow, clientId: string, { challenge }: Pkce, changes: Record<string, string | undefined> = {}): string {
  const members = {
    response_type: "code",
    client_id: clientId,
    redirect_uri: CALLBACK,
    scope: "device:read",
    state: "s t&=#",
    code_challenge: challenge,
    code_challenge_method: "S256",
    resource: flow.device.mcpUrl,
    ...changes,
  };
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(members)) if (value !== undefined) query.set(name, value);
  return `/oauth/authorize?${query.toString()}`;
}

/** What the form of a consent page would send as it is shown. */
export function formOf(html: string): [string, string][] {
  const fields: [string, string][] = [];
  for (const [tag] of html.matchAll(/<input [^>]*>/g)) {
    const attribute = (name: string): string | undefined => new RegExp(` ${name}="([^"]*)"`).exec(tag)?.[1];
    const isBox = attribute("type") === "checkbox" || attribute("type") === "radio";
    const name = attribute("name");
    if (name !== undefined && (!isBox || / checked(=|>| |\/)/.test(tag))) fields.push([name, attribute("value") ?? "on"]);
  }
  const days = /<select [^>]*name="days"[^>]*><option value="([^"]*)"/.exec(html)?.[1];
  return days === undefined ? fields : [...fields, ["days", days]];
}

/** Posts fields that may repeat. */
export async function postForm(
  flow: Flow,
  browser: Browser,
  fields: readonly [string, string][],
  origin: string | null = ORIGIN,
): Promise<Response> {
  return await flow.relay.send("/oauth/authorize", {
    method: "POST",
    headers: {
      Cookie: browser.cookie,
      "Content-Type": "application/x-www-form-urlencoded",
      ...(origin === null ? {} : { Origin: origin }),
    },
    body: new URLSearchParams(fields.map(([name, value]) => [name, value])).toString(),
    redirect: "manual",
  });
}

/** How a person answers: `tools` replaces what is ticked. */
export interface Answer {
  decision?: "allow" | "deny";
  tools?: readonly string[];
  all?: boolean;
  fields?: [string, string][];
}

/** Opens an authorization request in a browser and answers its page; gives the redirect. */
export async function decide(flow: Flow, browser: Browser, path: string, answer: Answer = {}): Promise<URL> {
  const page = await browser.get(path);
  expect(page.status).toBe(200);
  let fields = formOf(await page.text());
  if (answer.tools !== undefined)
    fields = [...fields.filter(([name]) => name !== "tool"), ...answer.tools.map((tool): [string, string] => ["tool", tool])];
  if (answer.all === true) fields = [...fields.filter(([name]) => name !== "scope"), ["scope", "all"]];
  const response = await postForm(flow, browser, [...fields, ...(answer.fields ?? []), ["decision", answer.decision ?? "allow"]]);
  expect(response.status).toBe(303);
  return new URL(response.headers.get("location") ?? "");
}

/** A request to the token endpoint. */
export function token(relay: Relay, fields: Record<string, string | undefined>, path = "/oauth/token"): Promise<Response> {
  const body = new URLSearchParams();
  for (const [name, value] of Object.entries(fields)) if (value !== undefined) body.set(name, value);
  return relay.send(path, { method: "POST", headers: { "Content-Type": "application/x-www-form-urlencoded" }, body: body.toString() });
}

/** Redeems a code. */
export function redeem(
  flow: Flow,
  clientId: string,
  code: string,
  { verifier }: Pkce,
  changes: Record<string, string | undefined> = {},
): Promise<Response> {
  const fields = { grant_type: "authorization_code", client_id: clientId, code, code_verifier: verifier, redirect_uri: CALLBACK };
  return token(flow.relay, { ...fields, resource: flow.device.mcpUrl, ...changes });
}

/** Refreshes. */
export function refresh(
  flow: Flow,
  clientId: string,
  refreshToken: string,
  changes: Record<string, string | undefined> = {},
): Promise<Response> {
  const fields = { grant_type: "refresh_token", client_id: clientId, refresh_token: refreshToken, resource: flow.device.mcpUrl };
  return token(flow.relay, { ...fields, ...changes });
}

/** The whole flow for a client; gives its tokens. */
export async function connect(
  flow: Flow,
  clientId: string,
  answer: Answer = {},
  changes: Record<string, string | undefined> = {},
): Promise<Tokens> {
  const pair = await pkce();
  const back = await decide(flow, flow.owner, authorizePath(flow, clientId, pair, changes), answer);
  const response = await redeem(flow, clientId, back.searchParams.get("code") ?? "", pair, {
    redirect_uri: changes["redirect_uri"] ?? CALLBACK,
  });
  expect(response.status).toBe(200);
  return await response.json<Tokens>();
}

/** The error code of an OAuth answer. */
export async function oauthErrorOf(response: Response): Promise<string> {
  return (await response.json<{ error: string }>()).error;
}
