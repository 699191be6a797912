/** The installation id: random, stored beside the journal, names this machine to the relay. */
import { randomBytes } from "node:crypto";
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Makes the state directory (mode 0700) and returns its installation id, made at the first start. */
export function openInstallation(stateDir: string): string {
  mkdirSync(stateDir, { recursive: true, mode: 0o700 });
  // `mkdir` leaves the mode of a directory that exists as it is.
  chmodSync(stateDir, 0o700);
  const path = join(stateDir, "installation");
  try {
    const known = readFileSync(path, "utf8").trim();
    if (/^i_[A-Za-z0-9_-]{22}$/.test(known)) return known;
  } catch {
    // The first start.
  }
  const id = `i_${randomBytes(16).toString("base64url")}`;
  writeFileSync(path, `${id}\n`, { mode: 0o600 });
  return id;
}
