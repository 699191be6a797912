/** The world outside the Worker in its tests: hosts under `.test` with fixed documents, everything else unreachable. */
import { Response } from "miniflare";

const CLIENT = {
  client_id: "https://client.test/good.json",
  client_name: "Document Client",
  redirect_uris: ["https://client.test/callback", "http://127.0.0.1/callback"],
  token_endpoint_auth_method: "none",
};

const DOCUMENTS = new Map<string, unknown>([
  ["https://client.test/good.json", CLIENT],
  ["https://client.test/other-id.json", { ...CLIENT, client_id: "https://client.test/good.json" }],
  ["https://client.test/nameless.json", { ...CLIENT, client_id: "https://client.test/nameless.json", client_name: "" }],
  ["https://client.test/large.json", { ...CLIENT, client_id: "https://client.test/large.json", padding: "x".repeat(8_192) }],
]);

/** Answers one request of the Worker. */
export function outside(request: { url: string }): Response {
  const document = DOCUMENTS.get(request.url);
  return document === undefined ? new Response("nothing here", { status: 404 }) : Response.json(document);
}
