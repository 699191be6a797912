/** Turns the first SIGINT, SIGTERM or SIGHUP into an abort, so that a command can end in order. */
import { closeSync, openSync } from "node:fs";
import { SERVE } from "../limits.ts";
import type { Terminal } from "./terminal.ts";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** The wish to stop. */
export interface StopSignal extends Disposable {
  signal: AbortSignal;
  /** Resolves at the first signal. */
  stopped: Promise<void>;
  /** What SIGHUP does while the terminal is still there; without it SIGHUP stops too. */
  onReload: (() => void) | undefined;
}

/**
 * Listens for stop signals. Later ones change nothing: a terminal and npm both pass Ctrl-C on, so that two arrive at
 * once. Under npm it also looks for the end of the shell between npm and this process, because npm signals only that
 * shell, which ends without passing it on. An orderly end has a deadline, after which the process ends with exit code 1.
 */
export function listenForStop(env: Terminal["env"]): StopSignal {
  const controller = new AbortController();
  const { promise, resolve } = Promise.withResolvers<void>();
  let deadline: NodeJS.Timeout | undefined;
  const stop = (): void => {
    if (controller.signal.aborted) return;
    deadline = setTimeout(() => process.exit(1), SERVE.stopMs).unref();
    controller.abort();
    resolve();
  };
  const hadTerminal = hasTerminal();
  const hangUp = (): void => {
    if (self.onReload === undefined || (hadTerminal && !hasTerminal())) stop();
    else self.onReload();
  };
  const handlerOf = (name: (typeof SIGNALS)[number]) => (name === "SIGHUP" ? hangUp : stop);
  for (const name of SIGNALS) process.on(name, handlerOf(name));
  const watch = env["npm_lifecycle_event"] === undefined ? undefined : watchParent(stop);
  const self: StopSignal = {
    signal: controller.signal,
    onReload: undefined,
    stopped: promise,
    [Symbol.dispose]: () => {
      clearTimeout(deadline);
      clearInterval(watch);
      for (const name of SIGNALS) process.removeListener(name, handlerOf(name));
    },
  };
  return self;
}

/** Whether this process has a terminal: SIGHUP means that it is gone, or, without one, whatever its sender wants. */
function hasTerminal(): boolean {
  if (process.platform === "win32") return false;
  try {
    closeSync(openSync("/dev/tty", "r"));
    return true;
  } catch {
    return false; // ENXIO: there is none.
  }
}

/** Calls back when the process that started this one is gone, which shows in the parent's id. */
function watchParent(onGone: () => void): NodeJS.Timeout {
  const parent = process.ppid;
  const look = (): void => {
    if (process.ppid !== parent) onGone();
  };
  return setInterval(look, SERVE.parentMs).unref();
}
