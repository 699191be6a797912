/** The way to the relay, step by step: name, port, certificate, HTTP, clock. The first step that fails ends it. */
import { lookup } from "node:dns/promises";
import { connect as connectTcp, isIP } from "node:net";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { z } from "zod";
import { proxyFor, proxyRefusal, routeTo } from "../../agent/network.ts";
import { ExchangeError, openExchange, readBody } from "../../agent/upstreams/http-exchange.ts";
import { API, DOCTOR } from "../../limits.ts";
import { cleanText } from "../../policy/clean-text.ts";
import { systemCode } from "../../serve/secret-file.ts";
import { failed, ok, skipped, warning, type Finding } from "./finding.ts";

const Health = z.looseObject({ ok: z.literal(true), version: z.string(), time: z.number().optional() });

/** Checks the way to the relay. Never rejects. */
export async function checkRelay(relay: URL): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const step of proxyFor(relay) === undefined ? [checkName, checkPort, checkCertificate, checkHealth] : [checkProxy, checkHealth]) {
    const found = await step(relay);
    findings.push(...found);
    if (found.some(({ state }) => state === "failed"))
      return [...findings, ...(step === checkHealth ? [] : [skipped("health", "not tried")])];
  }
  return findings;
}

async function checkProxy(relay: URL): Promise<Finding[]> {
  const proxy = proxyFor(relay);
  if (proxy === undefined) return [];
  const port = Number(proxy.port === "" ? (proxy.protocol === "https:" ? 443 : 80) : proxy.port);
  const problem = await tryPort(bare(proxy.hostname), port);
  if (problem === undefined) return [ok("tcp", `the proxy ${proxy.host} of the environment answers`)];
  const advice = "Correct HTTPS_PROXY, or name the relay in NO_PROXY when it can be reached directly.";
  return [failed("tcp", `the proxy ${proxy.host} of the environment cannot be reached (${problem})`, advice)];
}

async function checkName(relay: URL): Promise<Finding[]> {
  const host = bare(relay.hostname);
  if (isIP(host) !== 0) return [];
  try {
    const { address } = await lookup(host);
    return [ok("dns", `${host} is ${address}`)];
  } catch (error) {
    const advice = "Check --relay for a typing mistake, and that this machine has a network and a working DNS.";
    return [failed("dns", `${host} has no address (${systemCode(error) ?? "failed"})`, advice)];
  }
}

async function checkPort(relay: URL): Promise<Finding[]> {
  const port = portOf(relay);
  const problem = await tryPort(bare(relay.hostname), port);
  if (problem === undefined) return [ok("tcp", `port ${port} is open`)];
  const advice =
    problem === "ECONNREFUSED"
      ? "Nothing listens there: start the relay (`longline serve`), or correct the port of --relay."
      : "A firewall may be in between. If this network needs a proxy, set HTTPS_PROXY.";
  return [failed("tcp", `port ${port} cannot be reached (${problem})`, advice)];
}

async function checkCertificate(relay: URL): Promise<Finding[]> {
  if (relay.protocol !== "https:") return [];
  const host = bare(relay.hostname);
  const { ca } = routeTo(relay);
  const result = await new Promise<TLSSocket | string>((resolve) => {
    const socket: TLSSocket = connectTls(
      { host, port: portOf(relay), ...(isIP(host) === 0 ? { servername: host } : {}), ...(ca === undefined ? {} : { ca }) },
      () => resolve(socket),
    );
    socket.setTimeout(DOCTOR.stepMs, () => socket.destroy(Object.assign(new Error("late"), { code: "ETIMEDOUT" })));
    socket.once("error", (error) => resolve(systemCode(error) ?? "failed"));
  });
  if (typeof result === "string") return [badCertificate(result)];
  const until = Date.parse(result.getPeerCertificate().valid_to);
  result.destroy();
  if (until - Date.now() > DOCTOR.certificateMs) return [ok("tls", "the certificate is good")];
  return [
    warning("tls", `the relay's certificate ends on ${new Date(until).toISOString().slice(0, 10)}`, "Tell the relay's owner to renew it."),
  ];
}

/** Errors of OpenSSL and Node about a certificate; a proxy in between shows them only once HTTP is tried. */
const CERTIFICATE = /CERT|SELF_SIGNED|ISSUER|VERIFY|ALTNAME|^ERR_(?:TLS|SSL)/;

function badCertificate(code: string): Finding {
  return failed(
    "tls",
    `the relay's certificate is not accepted (${cleanText(code, 64)})`,
    "If a proxy of your network or the relay itself has its own certificate authority, pass its file with --ca-file or NODE_EXTRA_CA_CERTS. Check this machine's date too.",
  );
}

async function checkHealth(relay: URL): Promise<Finding[]> {
  const startedAt = Date.now();
  try {
    const response = await openExchange(
      { url: new URL("/health", relay), method: "GET", headers: {}, viaProxy: true },
      AbortSignal.timeout(DOCTOR.stepMs),
    );
    const tookMs = Date.now() - startedAt;
    const health = Health.safeParse(parsed((await readBody(response, API.maxBodyBytes)).toString("utf8")));
    if (response.statusCode !== 200 || !health.success) return [notRelay(relay, response.statusCode ?? 0)];
    const version = cleanText(health.data.version, 64);
    return [
      ok("health", `the relay answers in ${tookMs} ms (version ${version})`),
      ...clock(health.data.time ?? Date.parse(response.headers.date ?? ""), startedAt + tookMs / 2),
    ];
  } catch (error) {
    const code = error instanceof ExchangeError ? error.code : "no answer";
    const refused = proxyRefusal(code);
    if (CERTIFICATE.test(code)) return [badCertificate(code), skipped("health", "not tried")];
    if (refused === undefined) {
      return [
        failed(
          "health",
          `the relay gives no answer over HTTP (${cleanText(code, 64)})`,
          "Try again; if it stays, look at the relay's log.",
        ),
      ];
    }
    const advice =
      refused === 407 ? "Put name and password into HTTPS_PROXY: http://name:password@proxy." : "Ask whoever runs the proxy to allow it.";
    return [failed("health", `the proxy refuses to connect to ${relay.host} (HTTP ${refused})`, advice)];
  }
}

function notRelay(relay: URL, status: number): Finding {
  if (status === 421) {
    return failed(
      "health",
      `the relay does not know itself as ${relay.host}`,
      "Use the address its owner gave, or add this one: `longline origin add`.",
    );
  }
  return failed(
    "health",
    `what answers at ${relay.origin} is no Longline relay (HTTP ${status})`,
    "Correct --relay. A sign-in page of a guest network answers like this too.",
  );
}

/** A Date header has whole seconds (RFC 9110 §6.6.1); what is worth a word is far more. */
function clock(theirs: number, at: number): Finding[] {
  if (Number.isNaN(theirs)) return [];
  const skewMs = at - theirs;
  const text = `this machine's clock is ${Math.round(Math.abs(skewMs) / 1000)} s ${skewMs > 0 ? "ahead of" : "behind"} the relay's`;
  const advice = "Set the clock, or switch on time synchronisation (`timedatectl set-ntp true`).";
  if (Math.abs(skewMs) >= DOCTOR.badSkewMs) return [failed("clock", text, advice)];
  if (Math.abs(skewMs) >= DOCTOR.skewMs) return [warning("clock", text, advice)];
  return [ok("clock", "this machine's clock agrees with the relay's")];
}

async function tryPort(host: string, port: number): Promise<string | undefined> {
  return await new Promise((resolve) => {
    const socket = connectTcp({ host, port });
    const done = (problem: string | undefined): void => {
      socket.destroy();
      resolve(problem);
    };
    socket.setTimeout(DOCTOR.stepMs, () => done("ETIMEDOUT"));
    socket.once("connect", () => done(undefined));
    socket.once("error", (error) => done(systemCode(error) ?? "failed"));
  });
}

function portOf(relay: URL): number {
  return Number(relay.port === "" ? (relay.protocol === "https:" ? 443 : 80) : relay.port);
}

/** A host without the brackets of an IPv6 address. */
function bare(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, "");
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // Whatever it is, it is no relay's answer.
  }
}
