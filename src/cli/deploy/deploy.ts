/**
 * `longline deploy`: from nothing, or from an older version, to a relay that answers on Cloudflare. Each step can be run
 * again: what is there is found by its name and kept. An upgrade brings the database forward first, then tells the
 * agents, then puts the code in place, so that old code meets a newer schema for a moment, and never the reverse.
 */
import { randomBytes } from "node:crypto";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { ApiError } from "../../errors.ts";
import { CLI, NAMES, TUNNEL } from "../../limits.ts";
import { ownerStatements, type OwnerStatement } from "../../serve/owner.ts";
import { writePrivateFile } from "../../serve/secret-file.ts";
import { OwnerApi } from "../owner-api.ts";
import type { DeployDir, Place } from "./deploy-dir.ts";
import { checkLogin, countKeys, findDatabase, findNamespace, findWorker, namespaceTitle, ROOT_KEY } from "./resources.ts";
import type { Wrangler } from "./wrangler.ts";

/** How to deploy. */
export interface DeployOptions {
  name: string;
  domain: string | undefined;
  /** The relay has no domain of its own; to be said on a machine that did not make it. */
  workersDev: boolean;
  jurisdiction: string | undefined;
  wrangler: Wrangler;
  dir: DeployDir;
  /** The package: where `wrangler.toml` is. */
  root: string;
  /** Told of each step as it begins. */
  step: (text: string) => void;
}

/** A relay that answers. */
export interface Deployed {
  url: string;
  ownerToken: string;
  /** Signs one browser in, once. */
  setupLink: string;
  isUpgrade: boolean;
}

const SetupLink = z.looseObject({ link: z.string() });
const Drained = z.looseObject({ inFlight: z.number() });

/** Deploys a relay and resolves when it answers. */
export async function deploy(options: DeployOptions): Promise<Deployed> {
  const { name, wrangler, dir, root, step } = options;
  step("Checking the Cloudflare login");
  await checkLogin(wrangler);
  const worker = await findWorker(wrangler, name);
  const known = await dir.place();
  const place = placeOf(options, known, worker.exists);
  await dir.prepare();
  const databaseId = await database(options, place);
  const namespaceId = await namespace(options, place);
  await dir.writeConfig(root, { name, databaseId, namespaceId, place });

  step("Bringing the database to this version");
  await wrangler.run("d1", "migrations", "apply", name, "--remote", "--config", dir.configPath);
  if (!worker.hasRootKey && (await countKeys(wrangler, name, dir.configPath)) > 0) throw lostRootKey(name);
  const ownerToken = await dir.keptOwnerToken();
  await wrangler.run("d1", "execute", name, "--remote", "--yes", "--config", dir.configPath, "--command", ownerSql(ownerToken));
  if (worker.exists && known?.url !== undefined) await warnAgents(new OwnerApi(new URL(known.url), ownerToken), step);

  const url = await putCode(options, { databaseId, namespaceId, place, needsRootKey: !worker.hasRootKey });
  step(`Waiting until ${url} answers`);
  await untilHealthy(url);
  const { link } = await new OwnerApi(new URL(url), ownerToken).request(SetupLink, "POST", "/api/setup-links");
  return { url, ownerToken, setupLink: link, isUpgrade: worker.exists };
}

/** Where the relay is to be: as asked, else as before. */
function placeOf({ name, domain, workersDev, jurisdiction }: DeployOptions, known: Place | undefined, exists: boolean): Place {
  if (exists && known === undefined && domain === undefined && !workersDev) {
    const text = `A Worker named ${name} is there already, and this machine did not make it.`;
    throw new ApiError("bad_request", `${text} Pass its --domain, or --workers-dev if it has none; or choose another --name.`);
  }
  if (known !== undefined && jurisdiction !== undefined && jurisdiction !== known.jurisdiction) {
    throw new ApiError("bad_request", `A relay cannot move to another jurisdiction. Choose another --name for a new one.`);
  }
  const chosen = domain ?? (workersDev ? undefined : known?.domain);
  const url = chosen === undefined ? (known?.domain === undefined ? known?.url : undefined) : `https://${chosen}`;
  return { url, domain: chosen, jurisdiction: jurisdiction ?? known?.jurisdiction };
}

async function database({ name, wrangler, step }: DeployOptions, { jurisdiction }: Place): Promise<string> {
  const found = await findDatabase(wrangler, name);
  if (found !== undefined) return found;
  step(`Creating the D1 database ${name}`);
  await wrangler.run("d1", "create", name, ...(jurisdiction === undefined ? [] : ["--jurisdiction", jurisdiction]));
  return must(await findDatabase(wrangler, name), "database");
}

async function namespace({ name, wrangler, step }: DeployOptions, { jurisdiction }: Place): Promise<string> {
  const found = await findNamespace(wrangler, name);
  if (found !== undefined) return found;
  const title = namespaceTitle(name);
  step(`Creating the KV namespace ${title}`);
  await wrangler.run("kv", "namespace", "create", title, ...(jurisdiction === undefined ? [] : ["--jurisdiction", jurisdiction]));
  return must(await findNamespace(wrangler, name), "KV namespace");
}

function must(id: string | undefined, what: string): string {
  if (id === undefined) throw new ApiError("failed", `Cloudflare made a ${what} and does not list it yet. Run the same command again.`);
  return id;
}

function lostRootKey(name: string): ApiError {
  return new ApiError(
    "failed",
    `The database ${name} holds a relay's data, but there is no Worker with the key that opens it. \`longline destroy --name ${name}\` removes it, or choose another --name.`,
  );
}

/** SECURITY: the values are hashes, ids, numbers and our own label, so they can be written into the text. */
function ownerSql(ownerToken: string): string {
  return ownerStatements(ownerToken, "deploy", Date.now()).map(literal).join("; ");
}

function literal({ sql, values }: OwnerStatement): string {
  let at = 0;
  return sql.replace(/\?/g, () => {
    const value = values[at];
    at += 1;
    if (typeof value === "number") return String(value);
    if (value === undefined || !/^[\w-]+$/.test(value)) throw new Error("a value that cannot be written into a statement");
    return `'${value}'`;
  });
}

/** Agents hear of the end of the old code before it comes, and what is in flight may end, for a limited time. */
async function warnAgents(api: OwnerApi, step: (text: string) => void): Promise<void> {
  step("Telling the agents");
  const until = Date.now() + TUNNEL.drainMs;
  try {
    while ((await api.request(Drained, "POST", "/api/drain")).inFlight > 0 && Date.now() < until) await sleep(CLI.drainPollMs);
  } catch {
    // An older relay, or one that does not answer: its agents find out by the closed socket, and come back.
    step("The running relay could not tell its agents; they come back by themselves");
  }
}

interface Code {
  databaseId: string;
  namespaceId: string;
  place: Place;
  needsRootKey: boolean;
}

/** Uploads the Worker; a second time when only the first upload says under which address it is. */
async function putCode(options: DeployOptions, code: Code): Promise<string> {
  const { name, wrangler, dir, root, step } = options;
  step("Deploying the Worker");
  const upload = ["--config", dir.configPath, "--keep-vars"];
  const origins = code.needsRootKey
    ? await withRootKey(dir, (file) => wrangler.deploy(...upload, "--secrets-file", file))
    : await wrangler.deploy(...upload);
  const { place } = code;
  const url = place.url ?? origins[0];
  if (url === undefined)
    throw new ApiError(
      "failed",
      "The Worker has no address: the account has no workers.dev subdomain. Make one in the dashboard, or pass --domain.",
    );
  await dir.rememberPlace({ ...place, url });
  if (place.url !== undefined) return url;
  step(`Deploying the Worker again, now that its address is known`);
  await dir.writeConfig(root, { name, databaseId: code.databaseId, namespaceId: code.namespaceId, place: { ...place, url } });
  await wrangler.deploy(...upload);
  return url;
}

/** A new root key, in a file for as long as wrangler needs it: Cloudflare keeps it and never shows it again. */
async function withRootKey<T>(dir: DeployDir, use: (file: string) => Promise<T>): Promise<T> {
  const file = join(dir.path, "secrets.json");
  await writePrivateFile(file, JSON.stringify({ [ROOT_KEY]: randomBytes(NAMES.secretBits / 8).toString("base64url") }));
  try {
    return await use(file);
  } finally {
    await rm(file, { force: true });
  }
}

async function untilHealthy(url: string): Promise<void> {
  const until = Date.now() + CLI.deployHealthMs;
  let last = "no answer";
  while (Date.now() < until) {
    const response = await fetch(`${url}/health`, { redirect: "manual", signal: AbortSignal.timeout(CLI.requestMs) }).catch(
      () => undefined,
    );
    await response?.body?.cancel();
    if (response?.ok === true) return;
    if (response !== undefined) last = `HTTP ${response.status}`;
    await sleep(CLI.deployPollMs);
  }
  throw new ApiError(
    "failed",
    `The Worker is deployed, but ${url}/health does not answer well yet (${last}). A new domain can take minutes; run the same command again.`,
  );
}
