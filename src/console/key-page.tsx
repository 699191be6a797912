/** Shows a device key, once, with the command that uses it. */
import type { Context } from "hono";
import type { TokenHolder } from "../db/owner-tokens.ts";
import type { AppEnv } from "../env.ts";
import { page } from "./page.tsx";
import { Copyable, dayText, Heading } from "./parts.tsx";
import { devicePath } from "./paths.ts";

/** What a new key is shown with. */
export interface NewKey {
  person: TokenHolder;
  device: string;
  deviceKey: string;
  /** The relay's own address. */
  relay: string;
  /** Until when (epoch ms) the keys before it work; absent for a new device. */
  olderUntil?: number;
}

/** The page that follows adding a device or rotating its key. */
export function keyPage(c: Context<AppEnv>, { person, device, deviceKey, relay, olderUntil }: NewKey): Promise<Response> {
  const title = olderUntil === undefined ? `Start the agent of ${device}` : `A new key for ${device}`;
  return page(c, {
    title,
    console: { person, here: "devices" },
    heading: <Heading title={title} back={{ to: devicePath(device), text: device }} />,
    body: (
      <>
        <p class="warning">The key is shown this once. Whoever has it can answer as this device, so keep it on the device alone.</p>
        {olderUntil === undefined ? null : (
          <p>
            The key before it works until this one is used, and at the latest until {dayText(olderUntil)}. Nothing is interrupted meanwhile.
          </p>
        )}
        <section class="card">
          <ol class="steps">
            <li>
              <h3>On the device, set the key</h3>
              <Copyable label="the key" text={`export LONGLINE_DEVICE_KEY=${deviceKey}`} />
            </li>
            <li>
              <h3>Start the agent with the tools it should offer</h3>
              <p class="note">A few harmless tools, to see that it works:</p>
              <Copyable label="the command with demo tools" text={`longline agent --relay ${relay} --demo`} />
              <p class="note">An MCP server that speaks on its standard streams:</p>
              <Copyable
                label="the command with a stdio server"
                text={`longline agent --relay ${relay} -- npx -y @modelcontextprotocol/server-filesystem ~/notes`}
              />
              <p class="note">An MCP server over HTTP:</p>
              <Copyable
                label="the command with an HTTP server"
                text={`longline agent --relay ${relay} --upstream http://127.0.0.1:3000/mcp`}
              />
            </li>
            <li>
              <h3>See it come online</h3>
              <p>
                <a class="button" href={devicePath(device)}>
                  Go to {device}
                </a>
              </p>
            </li>
          </ol>
        </section>
      </>
    ),
  });
}
