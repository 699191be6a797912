/** The processes of a subject: its workerd, found below the process that started it, and what they use. Linux only. */
import { readdir, readFile } from "node:fs/promises";

const PAGE_BYTES = 4096;
/** CPU ticks per second of `/proc`, fixed by Linux's interface to user space. */
const TICKS_PER_SECOND = 100;

async function statOf(pid: number): Promise<string[] | null> {
  const text = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => null);
  // The second field is the program's name, in parentheses, and may hold blanks.
  return text === null ? null : text.slice(text.lastIndexOf(")") + 2).split(" ");
}

/** Every process below one, by id. */
async function below(root: number): Promise<number[]> {
  const parents = new Map<number, number>();
  for (const entry of await readdir("/proc")) {
    const parent = /^\d+$/.test(entry) ? (await statOf(Number(entry)))?.[1] : undefined;
    if (parent !== undefined) parents.set(Number(entry), Number(parent));
  }
  const isBelow = (pid: number): boolean => {
    const parent = parents.get(pid);
    return parent !== undefined && (parent === root || isBelow(parent));
  };
  return [...parents.keys()].filter(isBelow);
}

/** Ids of the workerd processes below one. */
export async function workerdBelow(root: number): Promise<number[]> {
  const pids = await below(root);
  const names = await Promise.all(pids.map(async (pid) => [pid, await readFile(`/proc/${pid}/comm`, "utf8").catch(() => "")] as const));
  return names.filter(([, name]) => name.startsWith("workerd")).map(([pid]) => pid);
}

/** Resident memory of a process, bytes. */
export async function residentBytes(pid: number): Promise<number> {
  const text = await readFile(`/proc/${pid}/statm`, "utf8");
  return Number(text.split(" ")[1]) * PAGE_BYTES;
}

/** CPU time that a process has used, ms. */
export async function cpuMs(pid: number): Promise<number> {
  const stat = await statOf(pid);
  return ((Number(stat?.[11] ?? 0) + Number(stat?.[12] ?? 0)) / TICKS_PER_SECOND) * 1000;
}

/** CPU time of each of some processes, ms. */
export async function cpuOf(pids: Readonly<Record<string, number>>): Promise<Record<string, number>> {
  return Object.fromEntries(await Promise.all(Object.entries(pids).map(async ([name, pid]) => [name, await cpuMs(pid)] as const)));
}
