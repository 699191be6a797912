/** Editing one grant. */
import type { Context } from "hono";
import type { OfferedTool } from "../../durable/rpc.ts";
import type { GrantRecord } from "../db/grants.ts";
import type { TokenHolder } from "../db/owner-tokens.ts";
import type { AppEnv } from "../env.ts";
import { DEVICE, GRANT } from "../limits.ts";
import { cleanText } from "../policy/clean-text.ts";
import { page } from "./page.tsx";
import { dayText, Heading, Problem } from "./parts.tsx";
import { devicePath, grantPath } from "./paths.ts";
import { LifeField, RateField, RightsFields } from "./rights-fields.tsx";

/** What the form shows. */
export interface GrantView {
  person: TokenHolder;
  record: GrantRecord;
  tools: readonly OfferedTool[] | null;
  problem: string | undefined;
}

/** Shows the form. */
export function grantPage(c: Context<AppEnv>, { person, record, tools, problem }: GrantView): Promise<Response> {
  const { grant, deviceName, note } = record;
  const title = `Edit ${cleanText(grant.label)}`;
  return page(c, {
    title,
    status: problem === undefined ? 200 : 400,
    console: { person, here: "devices" },
    heading: <Heading title={title} back={{ to: devicePath(deviceName), text: deviceName }} />,
    body: (
      <>
        <Problem text={problem} />
        <form method="post" action={grantPath(grant.id)} class="card">
          <label for="for">Label</label>
          <input id="for" name="for" value={cleanText(grant.label)} maxlength={GRANT.labelLength} autocomplete="off" required />
          <RightsFields tools={tools} rights={grant.rights} />
          <LifeField keep={`As it is: ${dayText(grant.expiresAt)}`} />
          <p class="note">A longer life needs a new token, which is shown after saving; a shorter one ends the old token early.</p>
          <RateField value={grant.caps.callsPerMinute} />
          <label for="note">Note, for owners only</label>
          <input id="note" name="note" value={note === null ? "" : cleanText(note)} maxlength={DEVICE.noteLength} autocomplete="off" />
          <button type="submit">Save</button>
        </form>
      </>
    ),
  });
}
