/** What `start` keeps between two starts, beside the relay's own data: its device, and the token it showed. */
import { join } from "node:path";
import { z } from "zod";
import { readPrivateFile, writePrivateFile } from "../../serve/secret-file.ts";

const KeptGrant = z.object({ id: z.string(), token: z.string(), mcpUrl: z.string(), expiresAt: z.number() });

/** A token with its grant. */
export type KeptGrant = z.infer<typeof KeptGrant>;

const Kept = z.object({ device: z.string(), deviceKey: z.string(), grant: KeptGrant.optional() });

/** The device, its key, and the token with its grant. Secrets: the file is for its owner only. */
export type Kept = z.infer<typeof Kept>;

const FILE = "start.json";

/** What an earlier start kept; undefined at the first one, or when the file is no longer readable. */
export async function readKept(dataDir: string): Promise<Kept | undefined> {
  const text = await readPrivateFile(join(dataDir, FILE));
  if (text === undefined) return undefined;
  try {
    return Kept.parse(JSON.parse(text));
  } catch {
    // A damaged file costs a new device and token, not the start.
    return undefined;
  }
}

/** Keeps it for the next start. */
export async function writeKept(dataDir: string, kept: Kept): Promise<void> {
  await writePrivateFile(join(dataDir, FILE), `${JSON.stringify(kept)}\n`);
}
