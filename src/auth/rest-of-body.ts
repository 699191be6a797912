/** What an answer left unread of a request's body. */
import type { MiddlewareHandler } from "hono";
import type { AppEnv } from "../env.ts";
import { EDGE } from "../limits.ts";

/**
 * Reads what a refusal left of the body and forgets it, up to EDGE.dropBytes and for EDGE.dropMs: a connection that is closed
 * under a client which still writes is reset, and the client never sees the answer (RFC 9112 §9.6).
 */
export const restOfBody: MiddlewareHandler<AppEnv> = async (c, next) => {
  // Before the route: a body limit may put another request in this one's place.
  const { body } = c.req.raw;
  await next();
  if (body !== null && !body.locked) await drop(body as ReadableStream<Uint8Array>);
};

async function drop(body: ReadableStream<Uint8Array>): Promise<void> {
  const reader = body.getReader();
  const deadline = setTimeout(() => void reader.cancel("too slow").catch(() => undefined), EDGE.dropMs);
  try {
    for (let dropped = 0; dropped < EDGE.dropBytes;) {
      const { done, value } = await reader.read();
      if (done) return;
      dropped += value.length;
    }
    await reader.cancel("too large");
  } catch {
    // The client left, or the deadline passed.
  } finally {
    clearTimeout(deadline);
  }
}
