/** Small files that only their owner may read. Replaced as a whole, so that a crash leaves the old or the new one. */
import { chmod, open, readFile, rename, stat } from "node:fs/promises";

const OWNER_ONLY = 0o600;
const OTHERS = 0o077;
const OTHERS_WRITE = 0o022;

/** Writes a file with mode 0600 by way of a temporary one beside it. */
export async function writePrivateFile(path: string, text: string): Promise<void> {
  const temporary = `${path}.${process.pid}.tmp`;
  const file = await open(temporary, "w", OWNER_ONLY);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(temporary, path);
}

/** Reads a file written by `writePrivateFile`, narrowing its mode again if somebody widened it; undefined when absent. */
export async function readPrivateFile(path: string): Promise<string | undefined> {
  const text = await readFile(path, "utf8").catch((error: unknown) => {
    if (isNotFound(error)) return undefined;
    throw error;
  });
  if (text !== undefined && (await isOpenToOthers(path))) await chmod(path, OWNER_ONLY);
  return text;
}

/** True when the group or others can read or change the file; never on Windows, which has no such modes. */
export async function isOpenToOthers(path: string): Promise<boolean> {
  return process.platform !== "win32" && ((await stat(path)).mode & OTHERS) !== 0;
}

/** True when the group or others can change the file; never on Windows. */
export async function isChangeableByOthers(path: string): Promise<boolean> {
  return process.platform !== "win32" && ((await stat(path)).mode & OTHERS_WRITE) !== 0;
}

/** True for a file system error that says "no such file". */
export function isNotFound(error: unknown): boolean {
  return systemCode(error) === "ENOENT";
}

/** The `code` of a file system or socket error, such as `EACCES`. */
export function systemCode(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}
