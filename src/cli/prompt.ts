/** Questions to a person at a terminal, on stderr. Whoever cannot be asked has not agreed. */
import { createInterface } from "node:readline/promises";
import { ApiError } from "../errors.ts";

/** The line that is typed. Without a terminal it fails with `elsewhere`, which says what to pass instead. */
export async function askLine(question: string, elsewhere: string): Promise<string> {
  if (!process.stdin.isTTY || !process.stderr.isTTY) throw new ApiError("bad_request", elsewhere);
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return (await lines.question(`${question} `)).trim();
  } finally {
    lines.close();
  }
}
