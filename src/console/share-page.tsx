/** Sharing a device: who, what, until when; it ends in a token or an invitation link. */
import type { Context } from "hono";
import type { OfferedTool } from "../../durable/rpc.ts";
import type { ListedMember } from "../db/members.ts";
import type { TokenHolder } from "../db/owner-tokens.ts";
import type { AppEnv } from "../env.ts";
import { GRANT } from "../limits.ts";
import { cleanText } from "../policy/clean-text.ts";
import type { Rights } from "../policy/grant.ts";
import { page } from "./page.tsx";
import { Heading, Problem } from "./parts.tsx";
import { devicePath } from "./paths.ts";
import { LifeField, RateField, RightsFields } from "./rights-fields.tsx";

/** What the form shows; after a mistake, what was typed. */
export interface ShareView {
  person: TokenHolder;
  device: string;
  tools: readonly OfferedTool[] | null;
  members: readonly ListedMember[];
  label: string;
  rights: Rights;
  problem: string | undefined;
}

function Who({ person, members, label }: Pick<ShareView, "person" | "members" | "label">) {
  const others = members.filter(({ id }) => id !== person.id);
  return (
    <fieldset>
      <legend>Who is it for</legend>
      <label class="box">
        <input type="radio" name="way" value="token" checked />
        <span>A token, for a client of somebody who is here already</span>
      </label>
      <label class="box">
        <input type="radio" name="way" value="invitation" />
        <span>An invitation link, for a person who then connects clients of their own</span>
      </label>
      <label for="for">Name of the person or client</label>
      <input id="for" name="for" value={label} maxlength={GRANT.labelLength} placeholder="Ada's laptop" autocomplete="off" required />
      {others.length === 0 ? null : (
        <>
          <label for="member">The token belongs to</label>
          <select id="member" name="member">
            <option value={person.id}>{`${cleanText(person.name)} (you)`}</option>
            {others.map(({ id, name }) => (
              <option value={id}>{cleanText(name)}</option>
            ))}
          </select>
        </>
      )}
    </fieldset>
  );
}

/** Shows the form. */
export function sharePage(c: Context<AppEnv>, view: ShareView): Promise<Response> {
  const { person, device, problem } = view;
  const title = `Share ${device}`;
  return page(c, {
    title,
    status: problem === undefined ? 200 : 400,
    console: { person, here: "devices" },
    heading: <Heading title={title} back={{ to: devicePath(device), text: device }} />,
    body: (
      <>
        <Problem text={problem} />
        <form method="post" action={devicePath(device, "share")} class="card">
          <Who {...view} />
          <RightsFields tools={view.tools} rights={view.rights} />
          <LifeField />
          <RateField value={null} />
          <button type="submit">Share</button>
        </form>
      </>
    ),
  });
}
