/** Asks before something is taken away or stopped. Works without scripts; only the button changes anything. */
import type { Context } from "hono";
import type { TokenHolder } from "../db/owner-tokens.ts";
import type { AppEnv } from "../env.ts";
import { page, type Section } from "./page.tsx";
import { Heading } from "./parts.tsx";

/** One question. */
export interface Question {
  person: TokenHolder;
  here: Section;
  title: string;
  /** What will happen, and whether it can be undone. */
  text: string;
  /** Where the button posts to, and where the other one leads. */
  action: string;
  back: { to: string; text: string };
  button: string;
  /** False when it can be undone. */
  isFinal: boolean;
}

/** Shows the question. */
export function confirmPage(c: Context<AppEnv>, { person, here, title, text, action, back, button, isFinal }: Question): Promise<Response> {
  return page(c, {
    title,
    console: { person, here },
    heading: <Heading title={title} back={back} />,
    body: (
      <section class="card">
        <p>{text}</p>
        <form method="post" action={action} class="actions">
          <button type="submit" class={isFinal ? "danger" : ""}>
            {button}
          </button>
          <a class="button quiet" href={back.to}>
            Cancel
          </a>
        </form>
      </section>
    ),
  });
}
