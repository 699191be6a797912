/** `GET /agent.mjs`: the agent in one file, for machines that install nothing. It is an asset beside the Worker, not part of it. */
import { Hono } from "hono";
import type { AppEnv } from "../env.ts";
import { ApiError } from "../errors.ts";

const PATH = "/agent.mjs";

/** The route of the agent's file. */
export function agentFileRoutes(): Hono<AppEnv> {
  return new Hono<AppEnv>().get(PATH, async (c) => {
    // The asset's address is fixed: nothing of the request reaches the store but its method and its copy's tag.
    const tag = c.req.header("if-none-match");
    const headers: Record<string, string> = tag === undefined ? {} : { "if-none-match": tag };
    const asset = await c.env.ASSETS?.fetch(new Request(`https://assets${PATH}`, { headers }));
    if (asset === undefined || asset.status === 404) {
      await asset?.body?.cancel();
      throw new ApiError("not_found", "This relay was deployed without the agent's file. Deploy it again with `longline deploy`.");
    }
    const etag = asset.headers.get("etag");
    const answered = {
      "Content-Type": "text/javascript; charset=utf-8",
      "Cache-Control": "no-cache",
      ...(etag === null ? {} : { ETag: etag }),
    };
    return asset.status === 304 ? c.body(null, 304, answered) : new Response(asset.body, { headers: answered });
  });
}
