/** Where the browser brings the code: a loopback port that listens only while somebody signs in (RFC 8252 §7.3). */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { ApiError } from "../../errors.ts";
import { CONNECT } from "../../limits.ts";

const PATH = "/callback";
const PAGE =
  "<!doctype html><meta charset=utf-8><title>Longline</title><p>Done. You can close this window and go back to your application.";

/** A listening callback. */
export interface Callback extends Disposable {
  url: string;
  /** The parameters of the browser's visit that carries this state. Rejects when nobody came in time. */
  visited(state: string): Promise<URLSearchParams>;
}

/** Listens on the port of `preferred` when it is free, else on another. */
export async function listenForCode(preferred: string | undefined): Promise<Callback> {
  const arrivals = new EventTarget();
  const seen: URLSearchParams[] = [];
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? "/", "http://127.0.0.1");
    const isCallback = request.method === "GET" && url.pathname === PATH;
    response.writeHead(isCallback ? 200 : 404, { "content-type": "text/html; charset=utf-8", connection: "close" });
    response.end(isCallback ? PAGE : "");
    if (!isCallback) return;
    seen.push(url.searchParams);
    arrivals.dispatchEvent(new Event("visit"));
  });
  const port = preferred === undefined ? 0 : Number(new URL(preferred).port);
  await listen(server, port).catch(async () => await listen(server, 0));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}${PATH}`,
    visited: async (state) => await firstVisit(arrivals, () => seen.find((params) => params.get("state") === state)),
    [Symbol.dispose]: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

async function listen(server: Server, port: number): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", () => {
      server.off("error", reject);
      resolve();
    });
  });
}

async function firstVisit(arrivals: EventTarget, look: () => URLSearchParams | undefined): Promise<URLSearchParams> {
  return await new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      arrivals.removeEventListener("visit", check);
      reject(new ApiError("not_authorised", "Nobody signed in. Start it again for another try, or pass a token in LONGLINE_TOKEN."));
    }, CONNECT.signInMs);
    const check = (): void => {
      const params = look();
      if (params === undefined) return;
      clearTimeout(timer);
      arrivals.removeEventListener("visit", check);
      resolve(params);
    };
    arrivals.addEventListener("visit", check);
    check();
  });
}
