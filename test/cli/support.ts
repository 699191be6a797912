/** Runs commands inside the test's process, against a relay that is a few canned answers. */
import { createServer, type IncomingMessage } from "node:http";
import { run } from "../../src/cli/program.ts";
import type { Terminal } from "../../src/cli/terminal.ts";

/** What one command printed, and how it ended. */
export interface Outcome {
  code: number;
  out: string;
  err: string;
}

/** Runs one command line. The working directory holds no relay unless `cwd` says so. */
export async function command(
  argv: readonly string[],
  options: { env?: Record<string, string>; cwd?: string; columns?: number } = {},
): Promise<Outcome> {
  const out: string[] = [];
  const err: string[] = [];
  const terminal: Terminal = {
    env: options.env ?? {},
    cwd: options.cwd ?? "/nowhere",
    columns: options.columns,
    hasColor: false,
    out: (text) => out.push(text),
    err: (text) => err.push(text),
  };
  const code = await run(argv, terminal);
  return { code, out: out.join("\n"), err: err.join("\n") };
}

/** A request as the fake relay saw it. */
export interface Seen {
  method: string | undefined;
  url: string | undefined;
  headers: IncomingMessage["headers"];
  body: string;
}

/** A relay that answers every request with the same status and body. */
export async function fakeRelay(
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): Promise<{ env: Record<string, string>; url: string; seen: Seen[]; close: () => Promise<void> }> {
  const seen: Seen[] = [];
  const server = createServer((request, response) => {
    let text = "";
    request.setEncoding("utf8");
    request.on("data", (chunk: string) => (text += chunk));
    request.on("end", () => {
      seen.push({ method: request.method, url: request.url, headers: request.headers, body: text });
      response.writeHead(status, { "content-type": "application/json", ...headers });
      response.end(typeof body === "string" ? body : JSON.stringify(body));
    });
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const address = server.address();
  const url = `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`;
  return {
    url,
    env: { LONGLINE_RELAY: url, LONGLINE_OWNER_TOKEN: "llo_secret" },
    seen,
    close: async () => {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
}
