/** Exit codes of the `longline` command. They are API: other programs decide by them. */
import { API_ERRORS, ApiError } from "../errors.ts";

export const EXIT = { ok: 0, failed: 1, usage: 2, notAuthorised: 3, notFound: 4, unreachable: 5, offline: 6 } as const;

/** The exit code of a failure; anything unexpected is 1. */
export function exitCodeOf(error: unknown): number {
  return error instanceof ApiError ? API_ERRORS[error.code].exit : EXIT.failed;
}
