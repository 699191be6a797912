/** What a sign-in left, in one private file: the registered client, its tokens and when they were given. */
import { mkdir } from "node:fs/promises";
import { dirname } from "node:path";
import { z } from "zod";
import { readPrivateFile, writePrivateFile } from "../../serve/secret-file.ts";

const SignedIn = z.object({
  /** Where the registered client takes codes. */
  redirectUrl: z.string().optional(),
  client: z.looseObject({ client_id: z.string() }).optional(),
  tokens: z.looseObject({ access_token: z.string(), token_type: z.string() }).optional(),
  /** Epoch ms at which the access token ends. */
  expiresAt: z.number().optional(),
});
export type SignedIn = z.infer<typeof SignedIn>;

/** What is kept; nothing when there is no file, or none that can be used. */
export async function readSignedIn(path: string): Promise<SignedIn> {
  const text = await readPrivateFile(path);
  try {
    return text === undefined ? {} : SignedIn.parse(JSON.parse(text));
  } catch {
    return {}; // Signing in again writes it anew.
  }
}

/** Changes what is kept. Other processes may have written since it was last read, so it is read again. */
export async function changeSignedIn(path: string, change: (kept: SignedIn) => SignedIn): Promise<void> {
  const kept = await readSignedIn(path);
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  await writePrivateFile(path, `${JSON.stringify(change(kept))}\n`);
}
