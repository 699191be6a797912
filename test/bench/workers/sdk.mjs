// What a relay on the official SDK costs: the floor's tunnel, with `createMcpHandler` terminating MCP at the edge.
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { z } from "zod";

export { Tunnel } from "./floor.mjs";

const inputSchema = z.object({ text: z.string() });

function serverFor(env, device) {
  const server = new McpServer({ name: "bench-sdk", version: "1.0.0" });
  server.registerTool(
    "echo",
    { description: "Returns the text it is given.", inputSchema, outputSchema: inputSchema },
    async ({ text }) => {
      const { first } = await env.TUNNEL.getByName(device).call("call", text.length, text);
      return { content: [{ type: "text", text: first }], structuredContent: { text: first } };
    },
  );
  return server;
}

const handlers = new Map();

export default {
  async fetch(request, env) {
    const [, kind, device] = new URL(request.url).pathname.split("/");
    if (kind === "tunnel") return env.TUNNEL.getByName(device).fetch(request);
    let handler = handlers.get(device);
    if (handler === undefined) handlers.set(device, (handler = createMcpHandler(() => serverFor(env, device), { responseMode: "json" })));
    return handler.fetch(request);
  },
};
