/**
 * Posts to the wake URL of a device. The address is its owner's own; nothing of the call goes there but that there is
 * one. No redirect is followed and no answer is read.
 */
import { configOf, type Env } from "../env.ts";
import { WAKE } from "../limits.ts";
import { log } from "../log.ts";
import { isLoopbackWake, shownWakeUrl, wakeUrlProblem } from "../policy/wake-url.ts";

/** Never rejects: a wake that fails shows in the log, and the call fails as for any device that is away. */
export async function postWake(env: Env, text: string, device: string): Promise<void> {
  const shown = shownWakeUrl(text);
  try {
    // SECURITY: looked at again here, because a setting may have come from another runtime.
    const problem = wakeUrlProblem(text, configOf(env).runtime);
    if (problem !== undefined) return log("warn", "wake.refused", { url: shown });
    const request = new Request(text, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ event: "call", device }),
      redirect: "manual",
      signal: AbortSignal.timeout(WAKE.postMs),
    });
    const response = isLoopbackWake(new URL(text)) ? await env.LOOPBACK?.fetch(request) : await fetch(request);
    await response?.body?.cancel();
    log("info", "wake.posted", { url: shown, status: response?.status ?? 0 });
  } catch (error) {
    log("warn", "wake.failed", { url: shown, name: error instanceof Error ? error.name : "error" });
  }
}
