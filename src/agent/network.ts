/**
 * The way to a server: directly, or through the proxy that `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` name, always by
 * CONNECT (RFC 9110 §9.3.6), because a WebSocket needs it; and which certificate authorities are believed. Proxies and
 * authorities hold for the whole process.
 */
import { Agent as HttpAgent, type ClientRequest } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import * as tls from "node:tls";
import { HttpsProxyAgent } from "https-proxy-agent";
import { getProxyForUrl } from "proxy-from-env";
import { UPSTREAM } from "../limits.ts";

/** What a request of Node's HTTP client, or a WebSocket, is opened with. */
export interface Route {
  agent: HttpAgent;
  /** Authorities beyond Node's own, when there are any. */
  ca?: string[];
}

/** `code` of an error begins with it when the proxy refused; its HTTP status follows. */
const REFUSED = "PROXY_";
const LOOPBACK = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/;

// A device's address may change while nothing closes the old connection: an idle one is given up, so that the name is
// looked up anew. The limit counts idle connections only; Node leaves those in use to their request.
const KEEP = { keepAlive: true, timeout: UPSTREAM.idleSocketMs };
const httpAgent = new HttpAgent(KEEP);
const httpsAgent = new HttpsAgent(KEEP);
const proxies = new Map<string, HttpAgent>();
let authorities: string[] | undefined;

/** Believes these certificate authorities (PEM) as well as Node's own, from now on. */
export function trustAuthorities(pem: string): void {
  // Newer Nodes tell their whole default, with what NODE_EXTRA_CA_CERTS adds; older ones only what they came with.
  const known = typeof tls.getCACertificates === "function" ? tls.getCACertificates("default") : tls.rootCertificates;
  authorities = [...known, pem];
}

/** The way to this address, through a proxy when the environment names one for it. */
export function routeTo(url: URL): Route {
  const proxy = proxyFor(url);
  return proxy === undefined ? directTo(url) : withAuthorities(proxyAgent(proxy));
}

/** The way to this address, whatever the environment names. */
export function directTo(url: URL): Route {
  return withAuthorities(url.protocol === "https:" || url.protocol === "wss:" ? httpsAgent : httpAgent);
}

function withAuthorities(agent: HttpAgent): Route {
  return { agent, ...(authorities === undefined ? {} : { ca: authorities }) };
}

/** The proxy in front of this address; undefined for none. Loopback is never behind one. */
export function proxyFor(url: URL): URL | undefined {
  if (LOOPBACK.test(url.hostname)) return undefined;
  // A WebSocket goes the way of HTTP: the variables know no `wss`.
  const proxy = getProxyForUrl(`${url.protocol.replace(/^ws/, "http")}//${url.host}`);
  return proxy !== "" && URL.canParse(proxy) ? new URL(proxy) : undefined;
}

/** The HTTP status with which the proxy refused, when it did. */
export function proxyRefusal(code: string): number | undefined {
  return code.startsWith(REFUSED) ? Number(code.slice(REFUSED.length)) : undefined;
}

function proxyAgent(proxy: URL): HttpAgent {
  const known = proxies.get(proxy.href);
  if (known !== undefined) return known;
  const agent = new ProxyAgent(proxy, { ...KEEP, ...(authorities === undefined ? {} : { ca: authorities }) });
  proxies.set(proxy.href, agent);
  return agent;
}

/** A proxy's refusal becomes an error: the library's own way, to answer the request with it, looks like a refusal of the server. */
class ProxyAgent extends HttpsProxyAgent<string> {
  override async connect(request: ClientRequest, options: Parameters<HttpsProxyAgent<string>["connect"]>[1]) {
    let status = 200;
    request.once("proxyConnect", (answer: { statusCode: number }) => (status = answer.statusCode));
    const socket = await super.connect(request, options);
    if (status === 200) return socket;
    socket.destroy();
    throw Object.assign(new Error("the proxy refused"), { code: `${REFUSED}${status}` });
  }
}
