/**
 * Protected-resource metadata (RFC 9728), one document for each device's MCP URL. It is served for every well-formed
 * name, so that it says nothing about which devices exist.
 */
import { Hono } from "hono";
import { BASE_SCOPE } from "../auth/challenge.ts";
import { oauthOff } from "../auth/oauth/availability.ts";
import { mcpUrl } from "../auth/origins.ts";
import { type AppEnv, configOf } from "../env.ts";
import { isDeviceName } from "../policy/device-name.ts";
import { errorAnswer } from "./answer.ts";

const ROOT = "/.well-known/oauth-protected-resource";

/** The metadata routes. */
export function wellKnownRoutes(): Hono<AppEnv> {
  const app = new Hono<AppEnv>();
  app.get(`${ROOT}/mcp/:device`, (c) => {
    const name = c.req.param("device");
    if (!isDeviceName(name)) return errorAnswer(c, "not_found", "This is not the URL of a device: its name is not well-formed.");
    const { origins } = configOf(c.env);
    const off = oauthOff(origins, c.get("origin"));
    return c.json({
      // RFC 9728 §3.3: equal to the URL the client used, so it follows the origin that was asked.
      resource: mcpUrl(c.get("origin"), name),
      // Without one there is nobody to ask for tokens; the reason is for whoever looks.
      ...(off === undefined ? { authorization_servers: [origins[0]] } : { "dev.longline/oauth": off }),
      scopes_supported: [BASE_SCOPE],
      bearer_methods_supported: ["header"],
      resource_name: `Longline device ${name}`,
    });
  });
  app.get(ROOT, (c) => errorAnswer(c, "not_found", `Each device is a resource of its own. Its metadata is at ${ROOT}/mcp/<device>.`));
  return app;
}
