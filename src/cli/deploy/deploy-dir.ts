/**
 * What this machine keeps of a relay on Cloudflare, in `.longline/deploy/NAME/`: the owner token, where the relay is, and
 * the configuration for wrangler. A machine without them gets a token of its own, and has to be told the domain.
 */
import { randomBytes } from "node:crypto";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { parse } from "smol-toml";
import { z } from "zod";
import { NAMES } from "../../limits.ts";
import { BUILT_WORKER } from "../../serve/bundle.ts";
import { packageRoot } from "../../serve/package-root.ts";
import { readPrivateFile, writePrivateFile } from "../../serve/secret-file.ts";

const OWNER_TOKEN = "owner-token";
const PLACE = "relay.json";
const CONFIG = "wrangler.json";
const OWNER_DIR = 0o700;

/** Where a relay is: its address when that is known, and what was chosen at its first deploy. */
const Place = z.object({ url: z.string().optional(), domain: z.string().optional(), jurisdiction: z.string().optional() });
export type Place = z.infer<typeof Place>;

/** What a deployment adds to `wrangler.toml`. */
export interface Deployment {
  name: string;
  databaseId: string;
  namespaceId: string;
  place: Place;
}

export class DeployDir {
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  get configPath(): string {
    return join(this.path, CONFIG);
  }

  get ownerTokenPath(): string {
    return join(this.path, OWNER_TOKEN);
  }

  async prepare(): Promise<void> {
    await mkdir(this.path, { recursive: true, mode: OWNER_DIR });
  }

  /** The owner token of an earlier deploy. */
  async ownerToken(): Promise<string | undefined> {
    return (await readPrivateFile(this.ownerTokenPath))?.trim();
  }

  /** The owner token, made when there is none. */
  async keptOwnerToken(): Promise<string> {
    const kept = await this.ownerToken();
    if (kept !== undefined) return kept;
    const made = `llo_${randomBytes(NAMES.secretBits / 8).toString("base64url")}`;
    await writePrivateFile(this.ownerTokenPath, `${made}\n`);
    return made;
  }

  /** Where an earlier deploy from this machine put the relay. */
  async place(): Promise<Place | undefined> {
    const text = await readFile(join(this.path, PLACE), "utf8").catch(() => undefined);
    return text === undefined ? undefined : Place.parse(JSON.parse(text));
  }

  async rememberPlace(place: Place): Promise<void> {
    await writeFile(join(this.path, PLACE), `${JSON.stringify(place)}\n`);
  }

  /** Writes the configuration: `wrangler.toml` with the account's own ids. */
  async writeConfig(root: string, deployment: Deployment): Promise<void> {
    const config = deployConfig(await readFile(join(root, "wrangler.toml"), "utf8"), relative(this.path, root), deployment);
    await writeFile(this.configPath, `${JSON.stringify(config, undefined, 2)}\n`);
  }

  async remove(): Promise<void> {
    await rm(this.path, { recursive: true, force: true });
  }
}

type Table = Record<string, unknown>;

/** `wrangler.toml` as the configuration of one deployment; `root` is the package, as seen from where the configuration is. */
export function deployConfig(toml: string, root: string, deployment: Deployment): Table {
  const { name, databaseId, namespaceId, place } = deployment;
  const { url, domain, jurisdiction } = place;
  const { build, ...config } = parse(toml) as Table & {
    main: string;
    vars: Table;
    assets: Table;
    build?: Table;
    d1_databases: Table[];
    kv_namespaces: Table[];
  };
  const isSource = !import.meta.dirname.endsWith("dist");
  return {
    ...config,
    name,
    assets: { ...config.assets, directory: join(root, String(config.assets["directory"])) },
    // A package comes with its assets built.
    ...(isSource ? { build: { ...build, cwd: packageRoot() } } : {}),
    main: join(root, isSource ? config.main : BUILT_WORKER),
    vars: {
      LONGLINE_RUNTIME: config.vars["LONGLINE_RUNTIME"],
      // Unknown until the first deploy says it; a Worker that has one keeps it meanwhile.
      ...(url === undefined ? {} : { LONGLINE_ORIGINS: url }),
      ...(jurisdiction === undefined ? {} : { LONGLINE_JURISDICTION: jurisdiction }),
    },
    d1_databases: config.d1_databases.map((database) => ({
      ...database,
      database_name: name,
      database_id: databaseId,
      migrations_dir: join(root, String(database["migrations_dir"])),
    })),
    kv_namespaces: config.kv_namespaces.map((namespace) => ({ ...namespace, id: namespaceId })),
    // A relay has one address; a second one on workers.dev would be an origin that nobody listed.
    ...(domain === undefined ? { workers_dev: true } : { workers_dev: false, routes: [{ pattern: domain, custom_domain: true }] }),
    preview_urls: false,
  };
}
