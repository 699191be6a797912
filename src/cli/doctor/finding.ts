/** What one check of `longline doctor` found. */

export interface Finding {
  /** Stable name of the check. */
  check: "node" | "dns" | "tcp" | "tls" | "health" | "clock" | "websocket" | "key" | "state" | "program" | "config" | "upstream" | "tool";
  /** `skipped`: it could not be tried, and another finding says why. */
  state: "ok" | "warning" | "failed" | "skipped";
  message: string;
  /** What to do. */
  advice?: string;
}

export function ok(check: Finding["check"], message: string): Finding {
  return { check, state: "ok", message };
}

export function warning(check: Finding["check"], message: string, advice: string): Finding {
  return { check, state: "warning", message, advice };
}

export function failed(check: Finding["check"], message: string, advice: string): Finding {
  return { check, state: "failed", message, advice };
}

export function skipped(check: Finding["check"], message: string): Finding {
  return { check, state: "skipped", message };
}
