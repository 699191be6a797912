/** The agent in one file, as the relay serves it at `/agent.mjs`: bundled from source in a checkout, read from a build otherwise. */
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";

/** Where `wrangler deploy` looks for it, and where a package has it; relative to the package. */
export const BUILT_AGENT = "assets/agent.mjs";
/** The first thing it says on an older Node. */
const NODE_20 = `if (Number(process.versions.node.split(".")[0]) < 20) { console.error("longline: this is Node " + process.versions.node + ", and the agent needs 20 or newer."); process.exit(1); }\n`;
const SOURCE = "src/cli/agent-file.ts";

/** The file's JavaScript. Source wins over a build, which may be older. */
export async function agentFile(root: string): Promise<string> {
  const entry = join(root, SOURCE);
  return existsSync(entry) ? await bundleAgent(entry) : await readFile(join(root, BUILT_AGENT), "utf8");
}

/** Answers for the file. It is made when it is first asked for, and kept. */
export function serveAgentFile(root: string): (request: Request) => Promise<Response> {
  let made: Promise<{ code: string; tag: string }> | undefined;
  return async (request) => {
    made ??= agentFile(root).then((code) => ({ code, tag: `"${createHash("sha256").update(code).digest("base64url")}"` }));
    const { code, tag } = await made.catch((error: unknown) => {
      made = undefined;
      throw error;
    });
    const isKnown = request.headers.get("if-none-match") === tag;
    return new Response(isKnown ? null : code, { status: isKnown ? 304 : 200, headers: { etag: tag } });
  };
}

/** Bundles the agent with everything it needs but Node 20. */
export async function bundleAgent(entry: string): Promise<string> {
  const { build } = await import("esbuild");
  const result = await build({
    entryPoints: [entry],
    bundle: true,
    write: false,
    platform: "node",
    format: "esm",
    target: "node20",
    // Packages in CommonJS ask for Node's own modules by `require`.
    banner: {
      js: `${NODE_20}import { createRequire as longlineRequire } from "node:module"; const require = longlineRequire(import.meta.url);`,
    },
    // The WebSocket library looks for native helpers unless it is told that there are none.
    define: { "process.env.WS_NO_BUFFER_UTIL": `"1"`, "process.env.WS_NO_UTF_8_VALIDATE": `"1"` },
    external: ["bufferutil", "utf-8-validate"],
    legalComments: "eof",
    logLevel: "silent",
  });
  const [file] = result.outputFiles;
  if (file === undefined) throw new Error("the agent's bundle is empty");
  return file.text;
}
