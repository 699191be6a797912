/** Small stdio servers for one test each: a prelude that frames JSON lines and answers the usual requests, and the test's own part. */

const PRELUDE = `
import { createInterface } from "node:readline";
const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\n");
const reply = (id, result) => send({ id, result });
const fail = (id, code, message, data) => send({ id, error: { code, message, data } });
const text = (t) => ({ content: [{ type: "text", text: String(t) }] });
const answers = new Map();
let asked = 0;
const ask = (method, params) => new Promise((resolve) => { asked += 1; answers.set("s" + asked, resolve); send({ id: "s" + asked, method, params }); });
const seen = [];
const legacy = {
  initialize: (m) => reply(m.id, { protocolVersion: m.params.protocolVersion, capabilities: server.capabilities, serverInfo: { name: "raw", version: "1" } }),
  "tools/list": (m) => reply(m.id, { tools: server.tools }),
  "resources/list": (m) => reply(m.id, { resources: [] }),
  "resources/templates/list": (m) => reply(m.id, { resourceTemplates: [] }),
  "prompts/list": (m) => reply(m.id, { prompts: [] }),
  "logging/setLevel": (m) => reply(m.id, {}),
  ping: (m) => reply(m.id, {}),
};
const modern = {
  "server/discover": (m) => reply(m.id, { resultType: "complete", supportedVersions: ["2026-07-28"], capabilities: server.capabilities, ttlMs: 0, cacheScope: "private",
    _meta: { "io.modelcontextprotocol/serverInfo": { name: "raw", version: "1" } } }),
  "tools/list": (m) => reply(m.id, { resultType: "complete", tools: server.tools, ttlMs: 0, cacheScope: "private" }),
  initialize: (m) => fail(m.id, -32022, "no handshake here", { supported: ["2026-07-28"], requested: m.params.protocolVersion }),
};
const server = { tools: [{ name: "t", inputSchema: { type: "object" } }], capabilities: { tools: {} }, handlers: legacy };
const on = (method, handler) => { server.handlers = { ...server.handlers, [method]: handler }; };
const tool = (handler) => on("tools/call", handler);
const isModern = () => { server.handlers = { ...modern }; };
createInterface({ input: process.stdin }).on("line", (line) => {
  const message = JSON.parse(line);
  seen.push(message);
  if (message.method === undefined) { answers.get(message.id)?.(message.result ?? message.error); return; }
  const handler = server.handlers[message.method];
  if (handler) handler(message);
  else if (message.id !== undefined) fail(message.id, -32601, "Method not found");
});
`;

/** A legacy server, unless the body says \`isModern()\`. In reach: send, reply, fail, text, ask, tool, on, seen, server. */
export function rawServer(body: string): string {
  return `${PRELUDE}\n${body}`;
}
