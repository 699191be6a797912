/** `--ca-file`: certificate authorities of one's own, for a relay or a proxy behind a private one. */
import { X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { Option } from "commander";
import { trustAuthorities } from "../agent/network.ts";
import { ApiError } from "../errors.ts";
import type { Terminal } from "./terminal.ts";

/** The option, the same everywhere. */
export function caFileOption(): Option {
  return new Option("--ca-file <file>", "believe these certificate authorities (PEM) too; NODE_EXTRA_CA_CERTS works as well");
}

/** Believes the authorities of the file, when one is given. */
export async function useCaFile(terminal: Terminal, file: string | undefined): Promise<void> {
  if (file === undefined) return;
  const path = resolve(terminal.cwd, file);
  const pem = await readFile(path, "utf8").catch(() => {
    throw new ApiError("bad_request", `${path} cannot be read.`);
  });
  try {
    // Throws for what is no certificate; a file without one would otherwise fail at the first connection, and elsewhere.
    void new X509Certificate(pem);
  } catch {
    throw new ApiError("bad_request", `${path} holds no certificate in PEM form.`);
  }
  trustAuthorities(pem);
}
