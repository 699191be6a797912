/** `longline keys rotate`: the keys that sign access tokens. */
import { type Command } from "commander";
import { z } from "zod";
import { connect, withOwnerOptions, type OwnerOptions } from "../connection.ts";
import { printJson, type Terminal } from "../terminal.ts";
import { isoMinute, parseDuration } from "../times.ts";

interface RotateOptions extends OwnerOptions {
  overlap?: number;
  now?: boolean;
}

const Rotated = z.looseObject({ kid: z.string(), olderVerifyUntil: z.number() });

/** Adds the `keys` command to the program. */
export function addKeysCommand(program: Command, terminal: Terminal): void {
  const keys = program.command("keys").description("the keys that sign access tokens");
  withOwnerOptions(keys.command("rotate"))
    .description("sign new tokens with a new key; tokens that are out there stay valid until they expire")
    .option("--overlap <duration>", "how long older keys still count, instead of until the last token expires", parseDuration)
    .option("--now", "older keys end at once, and every token with them; for a key that may have leaked")
    .addHelpText("after", "\nExample:\n  longline keys rotate")
    .action(async (options: RotateOptions) => await rotate(terminal, options));
}

async function rotate(terminal: Terminal, options: RotateOptions): Promise<void> {
  const overlapMs = options.now === true ? 0 : options.overlap;
  const { kid, olderVerifyUntil } = await (
    await connect(terminal, options)
  ).request(Rotated, "POST", "/api/keys/rotate", overlapMs === undefined ? {} : { overlapMs });
  if (options.json === true) return printJson(terminal, { kid, olderVerifyUntil });
  terminal.err(`New tokens are signed with key ${kid}. Older keys count until ${isoMinute(olderVerifyUntil)}.`);
}
