/** `fetch` for libraries, over the agent's own HTTP client: the same proxies and authorities, no redirect followed. */
import { openExchange, readBody, type Exchange } from "./upstreams/http-exchange.ts";

/** Sends a request and reads its whole answer. Rejects as the underlying client does. */
export async function routedFetch(target: string | URL, init: RequestInit = {}): Promise<Response> {
  const request = new Request(target, { ...init, signal: null });
  const { method } = request;
  if (method !== "GET" && method !== "POST" && method !== "DELETE") throw new TypeError(`${method} is not used here`);
  const body = await request.text();
  const headers = Object.fromEntries(request.headers);
  const exchange: Exchange = { url: new URL(request.url), method, headers };
  const response = await openExchange(
    { ...exchange, viaProxy: true, ...(body === "" ? {} : { body }) },
    init.signal ?? new AbortController().signal,
  );
  const status = response.statusCode ?? 500;
  const bytes = await readBody(response);
  const answered = new Headers();
  for (const [name, value] of Object.entries(response.headers)) if (value !== undefined) answered.set(name, String(value));
  // Fetch, "null body status": a Response with one of these takes no body.
  const isEmpty = [101, 204, 205, 304].includes(status);
  return new Response(isEmpty ? null : new Uint8Array(bytes), { status, headers: answered });
}
