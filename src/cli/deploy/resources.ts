/** What a relay needs at Cloudflare besides its Worker: a D1 database and a KV namespace, found by name or made. */
import { z } from "zod";
import { ApiError } from "../../errors.ts";
import type { Wrangler } from "./wrangler.ts";

const Databases = z.array(z.looseObject({ name: z.string(), uuid: z.string() }));
const Namespaces = z.array(z.looseObject({ id: z.string(), title: z.string() }));
const Secrets = z.array(z.looseObject({ name: z.string() }));
const Counts = z.array(z.looseObject({ results: z.array(z.looseObject({ count: z.number() })) }));
const Login = z.looseObject({ loggedIn: z.boolean().optional() });

/** The Worker's one secret. */
export const ROOT_KEY = "LONGLINE_ROOT_KEY";

/** Cloudflare's code for a Worker that does not exist, and how wrangler says it. */
const NO_WORKER = /10007|does not exist|not found/i;

/** The title of a relay's KV namespace. */
export function namespaceTitle(name: string): string {
  return `${name}-oauth`;
}

/** Throws unless wrangler has a login that works. */
export async function checkLogin(wrangler: Wrangler): Promise<void> {
  const { code, stdout } = await wrangler.try(["whoami", "--json"]);
  const login = Login.safeParse(safeJson(stdout));
  if (code === 0 && login.data?.loggedIn !== false) return;
  throw new ApiError(
    "not_authorised",
    "Cloudflare does not know you here. Run `npx wrangler login`, or set CLOUDFLARE_API_TOKEN to a token that may edit Workers, D1 and KV.",
  );
}

/** The id of the relay's database, or undefined. */
export async function findDatabase(wrangler: Wrangler, name: string): Promise<string | undefined> {
  return (await wrangler.json(Databases, "d1", "list", "--json")).find((database) => database.name === name)?.uuid;
}

/** The id of the relay's KV namespace, or undefined. */
export async function findNamespace(wrangler: Wrangler, name: string): Promise<string | undefined> {
  const namespaces = await wrangler.json(Namespaces, "kv", "namespace", "list");
  return namespaces.find((namespace) => namespace.title === namespaceTitle(name))?.id;
}

/** Whether the Worker exists, and whether it has its root key. */
export async function findWorker(wrangler: Wrangler, name: string): Promise<{ exists: boolean; hasRootKey: boolean }> {
  const { code, stdout, stderr } = await wrangler.try(["secret", "list", "--name", name, "--format", "json"]);
  const secrets = Secrets.safeParse(safeJson(stdout));
  if (code === 0 && secrets.success) return { exists: true, hasRootKey: secrets.data.some((secret) => secret.name === ROOT_KEY) };
  if (NO_WORKER.test(`${stdout}${stderr}`)) return { exists: false, hasRootKey: false };
  throw new ApiError(
    "failed",
    "Cloudflare did not say whether the Worker exists. Try again; `npx wrangler whoami` shows the login in use.",
  );
}

/** How many signing keys the database holds: they can be opened only with the root key they were sealed with. */
export async function countKeys(wrangler: Wrangler, name: string, config: string): Promise<number> {
  const sql = "SELECT COUNT(*) AS count FROM signing_keys";
  const counts = await wrangler.json(Counts, "d1", "execute", name, "--remote", "--yes", "--json", "--config", config, "--command", sql);
  return counts[0]?.results[0]?.count ?? 0;
}

function safeJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
