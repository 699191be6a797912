/** Questions to a person at a terminal. Whoever cannot be asked has not agreed. */
import { ApiError } from "../errors.ts";

/** Asks for a word to be typed, and tells whether it was. Without a terminal it fails and names `--yes`. */
export async function askWord(question: string, word: string): Promise<boolean> {
  if (!process.stdin.isTTY || !process.stderr.isTTY)
    throw new ApiError("bad_request", "This has to be confirmed at a terminal. Pass --yes to do without.");
  const { default: input } = await import("@inquirer/input");
  return (await input({ message: question }, { output: process.stderr })).trim() === word;
}
