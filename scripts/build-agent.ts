/** Builds the agent's one file where `wrangler deploy` takes it from. */
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { agentFile, BUILT_AGENT } from "../src/serve/agent-file.ts";
import { packageRoot } from "../src/serve/package-root.ts";

const root = packageRoot();
const path = join(root, BUILT_AGENT);
const code = await agentFile(root);
await mkdir(dirname(path), { recursive: true });
await writeFile(path, code);
console.log(`Built ${path}`);
