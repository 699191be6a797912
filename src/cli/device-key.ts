/** Which device key a command uses: a file, the environment, or what this machine was paired with. */
import { resolve } from "node:path";
import { ApiError } from "../errors.ts";
import { readSecretText } from "./headers-file.ts";
import { pairedKeyPath } from "./state-dir.ts";
import type { Terminal } from "./terminal.ts";
import { packageVersion } from "./version.ts";

const DEVICE_KEY = /^llk_([0-9a-f]{32})_[A-Za-z0-9_-]{43}$/;

/** A device key, the id in it, and the file it was kept in when this machine was paired. */
export interface KnownKey {
  deviceKey: string;
  deviceId: string;
  keptIn?: string;
}

/** What says which key. */
export interface KeyOptions {
  keyFile?: string;
  pairAs?: string;
}

/** The key that was given; else the one this machine was paired with at this relay; else it is paired now. */
export async function deviceKeyFor(terminal: Terminal, options: KeyOptions, relay: URL, signal: AbortSignal): Promise<KnownKey> {
  const given = await givenKey(terminal, options);
  if (given !== undefined) return given;
  const kept = await pairedKey(terminal, options, relay);
  if (kept !== undefined) return kept;
  const { pair } = await import("./pairing.ts");
  const keyPath = pairedKeyPath(terminal.env, relay, options.pairAs);
  const deviceKey = await pair(terminal, { relay, keyPath, name: options.pairAs, version: packageVersion(), signal });
  return { ...readKey(deviceKey), keptIn: keyPath };
}

/** The key that was given or that this machine was paired with; undefined when there is none. */
export async function knownKey(terminal: Terminal, options: KeyOptions, relay: URL): Promise<KnownKey | undefined> {
  return (await givenKey(terminal, options)) ?? (await pairedKey(terminal, options, relay));
}

async function givenKey(terminal: Terminal, options: KeyOptions): Promise<KnownKey | undefined> {
  const file = options.keyFile;
  const warn = (text: string): void => terminal.err(`warning: ${text}`);
  const text = file === undefined ? terminal.env["LONGLINE_DEVICE_KEY"] : await readSecretText(resolve(terminal.cwd, file), warn);
  if (text !== undefined && text.trim() !== "") return readKey(text.trim());
  if (file !== undefined) throw new ApiError("bad_request", `${file} holds no device key. \`longline device add NAME\` makes one.`);
  return undefined;
}

async function pairedKey(terminal: Terminal, options: KeyOptions, relay: URL): Promise<KnownKey | undefined> {
  const { keptKey } = await import("./pairing.ts");
  const keyPath = pairedKeyPath(terminal.env, relay, options.pairAs);
  const kept = await keptKey(keyPath);
  return kept === undefined ? undefined : { ...readKey(kept), keptIn: keyPath };
}

/** Reads a device key; what is none is refused and not shown. */
export function readKey(deviceKey: string): { deviceKey: string; deviceId: string } {
  const deviceId = DEVICE_KEY.exec(deviceKey)?.[1];
  if (deviceId === undefined)
    throw new ApiError("not_authorised", "This is not a device key. `longline device add NAME` makes one that begins with llk_.");
  return { deviceKey, deviceId };
}
