/** The echo without a relay: a local Streamable HTTP server on the official SDK. Prints its port; ends with its standard input. */
import { createServer } from "node:http";
import { toNodeHandler } from "@modelcontextprotocol/node";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { z } from "zod";

const schema = z.object({ text: z.string() });

function buildServer(): McpServer {
  const server = new McpServer({ name: "bench-direct", version: "1.0.0" });
  server.registerTool(
    "echo",
    { description: "Returns the text it is given.", inputSchema: schema, outputSchema: schema },
    async ({ text }) => ({
      content: [{ type: "text", text }],
      structuredContent: { text },
    }),
  );
  return server;
}

const handler = toNodeHandler(createMcpHandler(buildServer, { responseMode: "json" }));
// SAFETY: the adapter wants a method and a URL, which every request of a server has.
const server = createServer((request, response) => void handler(request as Parameters<typeof handler>[0], response));
server.listen(0, "127.0.0.1", () => {
  const address = server.address();
  console.log(typeof address === "object" && address !== null ? address.port : 0);
});
process.stdin.on("end", () => process.exit(0)).resume();
