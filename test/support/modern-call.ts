/** One modern request by hand, with its answer as it arrives. */
import { modernRequest, readMessages } from "./clients.ts";

type Json = Record<string, unknown>;
type Options = NonNullable<Parameters<typeof modernRequest>[3]>;

/** The HTTP response of a tool call. */
export function postTool(
  at: { mcpUrl: string; token: string },
  name: string,
  args: Json = {},
  options: Options & { signal?: AbortSignal; params?: Json } = {},
): Promise<Response> {
  const { signal, params, ...more } = options;
  const request = modernRequest(at.token, "tools/call", { name, arguments: args, ...params }, more);
  return fetch(at.mcpUrl, signal === undefined ? request : { ...request, signal });
}

/** The last message of a tool call: its answer. */
export async function answerOf(response: Response): Promise<Json> {
  return (await readMessages(response)).at(-1) ?? {};
}
