/** Commands of the owner to a device's object, each with a deadline; every one of them may be repeated. */
import type { Env, TunnelStub } from "../env.ts";
import { API } from "../limits.ts";
import { log } from "../log.ts";
import { deviceStub } from "./device-stub.ts";

/** What became of a command: `unborn` when there is no object to tell, `failed` when it did not confirm in time. */
export type Told<T> = { state: "told"; value: T } | { state: "unborn" } | { state: "failed" };

async function withDeadline<T>(work: Promise<T>, ms: number): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | null = null;
  const deadline = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([work, deadline]);
  } finally {
    clearTimeout(timer);
  }
}

/** True when the object was lost (deploy, move, reset) rather than that it answered with an error or is overloaded. */
function wasLost(error: unknown): boolean {
  const flags = error as { remote?: boolean; overloaded?: boolean; durableObjectReset?: boolean; retryable?: boolean };
  return (flags.durableObjectReset === true || flags.retryable === true) && flags.remote !== true && flags.overloaded !== true;
}

/**
 * Runs `command` on the device's object if the device was born. A lost object is asked once more, on a fresh stub.
 * Never throws for the object's sake; throws when D1 cannot say whether there is one.
 */
export async function tellObject<T>(env: Env, deviceId: string, command: (stub: TunnelStub) => Promise<T>): Promise<Told<T>> {
  for (const isLast of [false, true]) {
    const found = await deviceStub(env, deviceId);
    if (found === null || !found.born) return { state: "unborn" };
    try {
      return { state: "told", value: await withDeadline(command(found.stub), API.objectMs) };
    } catch (error) {
      log("warn", "object.unreachable", { deviceId, error });
      if (isLast || !wasLost(error)) return { state: "failed" };
    }
  }
  return { state: "failed" };
}
