/**
 * The data directory of an embedded relay: `root-key` (seals signing keys), `owner-token`, `config.json` (the port),
 * `lock`, and the runtime's `d1/`, `do/` and `kv/`. The directory is for its owner only, and so is each secret in it.
 */
import { randomBytes } from "node:crypto";
import { chmod, mkdir, readdir, readFile, stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { z } from "zod";
import { ApiError } from "../errors.ts";
import { NAMES } from "../limits.ts";
import type { ProcessLock } from "../agent/process-lock.ts";
import { LOCK_FILE, lockDataDir } from "./lock.ts";
import { isNotFound, isOpenToOthers, readPrivateFile, systemCode, writePrivateFile } from "./secret-file.ts";

const ROOT_KEY = "root-key";
const OWNER_TOKEN = "owner-token";
const CONFIG = "config.json";
const OWNER_DIR = 0o700;

const Config = z.looseObject({ port: z.int().min(1).max(65_535).optional() });
type Config = z.infer<typeof Config>;

/** An open, locked data directory. */
export interface DataDir {
  path: string;
  lock: ProcessLock;
  /** 32 bytes in base64url. */
  rootKey: string;
  /** `llo_` and 32 bytes in base64url. */
  ownerToken: string;
  /** The port of an earlier start. */
  port: number | undefined;
  rememberPort(port: number): Promise<void>;
}

/** Opens a data directory, made at the first start, and locks it for this process. */
export async function openDataDir(dir: string, log: (line: string) => void): Promise<DataDir> {
  const path = resolve(dir);
  await prepareDir(path, log).catch((error: unknown) => {
    throw fileError(path, error);
  });
  const lock = lockedDir(path);
  try {
    return await readDataDir(path, lock);
  } catch (error) {
    lock.release();
    throw fileError(path, error);
  }
}

function lockedDir(path: string): ProcessLock {
  try {
    return lockDataDir(path);
  } catch (error) {
    throw fileError(path, error);
  }
}

/** The owner token kept in a data directory, if there is one. */
export async function readOwnerToken(dir: string): Promise<string | undefined> {
  return (await readPrivateFile(join(dir, OWNER_TOKEN)))?.trim();
}

/** Where the owner token of a data directory is kept. */
export function ownerTokenPath(dir: string): string {
  return join(dir, OWNER_TOKEN);
}

async function readDataDir(path: string, lock: ProcessLock): Promise<DataDir> {
  const config = await readConfig(join(path, CONFIG));
  return {
    path,
    lock,
    rootKey: await readRootKey(path),
    ownerToken: await keptSecret(join(path, OWNER_TOKEN), () => `llo_${newSecret()}`, /^llo_[A-Za-z0-9_-]{43}$/),
    port: config.port,
    rememberPort: async (port) => await writePrivateFile(join(path, CONFIG), `${JSON.stringify({ ...config, port }, undefined, 2)}\n`),
  };
}

/** The root key. A directory with data but without its key is not given a new one: nothing sealed could be opened. */
async function readRootKey(path: string): Promise<string> {
  const file = join(path, ROOT_KEY);
  const names = await readdir(path);
  if (names.includes("d1") && !names.includes(ROOT_KEY)) {
    throw new ApiError(
      "failed",
      `${file} is missing, and the data needs it. Restore it from a backup, or choose another directory with --data.`,
    );
  }
  return await keptSecret(file, newSecret, /^[A-Za-z0-9_-]{43}$/);
}

async function keptSecret(path: string, make: () => string, shape: RegExp): Promise<string> {
  const kept = (await readPrivateFile(path))?.trim();
  if (kept === undefined) {
    const made = make();
    await writePrivateFile(path, `${made}\n`);
    return made;
  }
  if (!shape.test(kept)) throw new ApiError("failed", `${path} is damaged. Restore it from a backup.`);
  return kept;
}

async function readConfig(path: string): Promise<Config> {
  const text = await readFile(path, "utf8").catch((error: unknown) => {
    if (isNotFound(error)) return "{}";
    throw error;
  });
  try {
    return Config.parse(JSON.parse(text));
  } catch {
    throw new ApiError("failed", `${path} is damaged. Restore it, or delete it: it holds the relay's port.`);
  }
}

async function prepareDir(path: string, log: (line: string) => void): Promise<void> {
  const isNew = await makeDir(path);
  if (isNew || !(await isOpenToOthers(path))) return;
  const names = await readdir(path);
  // A directory that holds other things keeps its mode: narrowing a shared one would lock its users out.
  if (names.length === 0 || names.includes(ROOT_KEY) || names.includes(LOCK_FILE)) await chmod(path, OWNER_DIR);
  else log(`${path} can be read by other users of this machine and holds files that are not Longline's; an own directory is safer.`);
}

/**
 * Makes a directory and what is missing above it; false when it exists. Each level is tried twice at most: Node's own
 * recursive mkdir never returns where the file system answers ENOENT for good, as /proc does.
 */
async function makeDir(path: string): Promise<boolean> {
  try {
    await mkdir(path, OWNER_DIR);
    return true;
  } catch (error) {
    if (systemCode(error) === "EEXIST" && (await stat(path)).isDirectory()) return false;
    if (!isNotFound(error) || !(await makeDir(dirname(path)))) throw error;
  }
  await mkdir(path, OWNER_DIR);
  return true;
}

function newSecret(): string {
  return randomBytes(NAMES.secretBits / 8).toString("base64url");
}

/** One clear line for what a file system refuses. */
function fileError(path: string, error: unknown): unknown {
  const code = systemCode(error);
  if (code === "EACCES" || code === "EPERM" || code === "EROFS") {
    return new ApiError("failed", `Cannot write to ${path}: permission denied. Change its owner, or choose another directory with --data.`);
  }
  if (code === "ENOTDIR" || code === "EEXIST") return new ApiError("failed", `${path} is not a directory. Choose another one with --data.`);
  if (code === "ENOSPC") return new ApiError("failed", `Cannot write to ${path}: the disk is full.`);
  if (code === "ENOENT") return new ApiError("failed", `Cannot create ${path}. Choose another directory with --data.`);
  return error;
}
