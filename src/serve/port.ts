/** Chooses the loopback port before the runtime starts: the relay's public origin contains it. */
import { createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { ApiError } from "../errors.ts";
import { SERVE } from "../limits.ts";
import { systemCode } from "./secret-file.ts";

/** The only address the embedded relay listens on. */
export const HOST = "127.0.0.1";

/** What decides the port: the option (0 is any), the one kept from an earlier start, and how long to wait for it. */
export interface PortChoice {
  asked: number | undefined;
  kept: number | undefined;
  waitMs: number;
}

/** A free port. One that is asked for or kept must be free, because clients know it; a first start takes any other. */
export async function choosePort({ asked, kept, waitMs }: PortChoice): Promise<number> {
  const wanted = asked === undefined || asked === 0 ? kept : asked;
  if (wanted !== undefined) {
    await waitUntilFree(wanted, waitMs);
    return wanted;
  }
  if (asked === undefined && (await tryPort(SERVE.defaultPort)) === undefined) return SERVE.defaultPort;
  return await anyPort();
}

/** The failure of a start whose port is not free. */
export function portTaken(port: number): ApiError {
  return new ApiError("failed", `Port ${port} is taken by another program. Stop it, or choose another port with --port.`);
}

async function waitUntilFree(port: number, waitMs: number): Promise<void> {
  const until = Date.now() + waitMs;
  for (;;) {
    const code = await tryPort(port);
    if (code === undefined) return;
    if (code !== "EADDRINUSE") throw new ApiError("failed", `Cannot listen on port ${port} (${code}). Choose another one with --port.`);
    if (Date.now() >= until) throw portTaken(port);
    await sleep(SERVE.pollMs);
  }
}

/** Undefined when the port can be listened on, otherwise the system's error code. */
async function tryPort(port: number): Promise<string | undefined> {
  return await listen(port).then(
    () => undefined,
    (error: unknown) => systemCode(error) ?? "unknown error",
  );
}

async function anyPort(): Promise<number> {
  return await listen(0);
}

/** Listens and closes again; gives the port. */
function listen(port: number): Promise<number> {
  return new Promise((done, fail) => {
    const server = createServer();
    server.once("error", fail);
    server.listen({ host: HOST, port, exclusive: true }, () => {
      const address = server.address();
      const bound = typeof address === "object" && address !== null ? address.port : port;
      server.close(() => done(bound));
    });
  });
}
