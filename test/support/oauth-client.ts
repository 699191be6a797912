/** The official client's OAuth, with what an application adds: memory, a callback on a loopback port, and a person's browser. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Client, StreamableHTTPClientTransport, UnauthorizedError } from "@modelcontextprotocol/client";
import type {
  OAuthClientProvider,
  OAuthDiscoveryState,
  StoredOAuthClientInformation,
  StoredOAuthTokens,
} from "@modelcontextprotocol/client";
import { within } from "./deadline.ts";

const CALLBACK_MS = 30_000;

/** Where codes arrive. */
export interface Callback {
  url: string;
  /** The parameters of the next arrival. */
  next(): Promise<URLSearchParams>;
  stop(): Promise<void>;
}

/** Listens on a free loopback port for what the authorization server sends the browser to. */
export async function startCallback(): Promise<Callback> {
  const arrived: URLSearchParams[] = [];
  const waiting: ((params: URLSearchParams) => void)[] = [];
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? "/", "http://localhost");
    response.end("You can go back to the application.");
    if (url.pathname !== "/callback") return;
    const waiter = waiting.shift();
    if (waiter === undefined) arrived.push(url.searchParams);
    else waiter(url.searchParams);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/callback`,
    next: () => {
      const first = arrived.shift();
      const promise = first === undefined ? new Promise<URLSearchParams>((resolve) => waiting.push(resolve)) : Promise.resolve(first);
      return within(CALLBACK_MS, "the authorization response", promise);
    },
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** An application that keeps everything in memory. */
export class MemoryProvider implements OAuthClientProvider {
  readonly redirectUrl: string;
  /** Where the person was sent, in order. */
  readonly sent: URL[] = [];
  info: StoredOAuthClientInformation | undefined;
  stored: StoredOAuthTokens | undefined;
  #verifier = "";
  #discovery: OAuthDiscoveryState | undefined;

  constructor(redirectUrl: string) {
    this.redirectUrl = redirectUrl;
  }

  get clientMetadata() {
    return {
      client_name: "Official Client",
      redirect_uris: [this.redirectUrl],
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      token_endpoint_auth_method: "none",
    };
  }
  clientInformation(): StoredOAuthClientInformation | undefined {
    return this.info;
  }
  saveClientInformation(info: StoredOAuthClientInformation): void {
    this.info = info;
  }
  tokens(): StoredOAuthTokens | undefined {
    return this.stored;
  }
  saveTokens(tokens: StoredOAuthTokens): void {
    this.stored = tokens;
  }
  redirectToAuthorization(url: URL): void {
    this.sent.push(url);
  }
  saveCodeVerifier(verifier: string): void {
    this.#verifier = verifier;
  }
  codeVerifier(): string {
    return this.#verifier;
  }
  saveDiscoveryState(state: OAuthDiscoveryState): void {
    this.#discovery = state;
  }
  discoveryState(): OAuthDiscoveryState | undefined {
    return this.#discovery;
  }
  invalidateCredentials(what: "all" | "client" | "tokens" | "verifier" | "discovery"): void {
    if (what === "all" || what === "tokens") this.stored = undefined;
    if (what === "all" || what === "client") this.info = undefined;
    if (what === "all" || what === "discovery") this.#discovery = undefined;
  }
}

/** One connected client; `transport` finishes authorizations. */
export interface Connected {
  client: Client;
  transport: StreamableHTTPClientTransport;
}

function newClient(mcpUrl: string, provider: MemoryProvider): Connected {
  const client = new Client({ name: "official", version: "1" }, { versionNegotiation: { mode: "auto" } });
  return { client, transport: new StreamableHTTPClientTransport(new URL(mcpUrl), { authProvider: provider }) };
}

/** Runs `attempt`; when it needs a person, `person` is sent to the page and the answer finished, and it runs again. */
export async function authorized<T>(
  { transport }: Pick<Connected, "transport">,
  provider: MemoryProvider,
  person: (url: URL) => Promise<URLSearchParams>,
  attempt: () => Promise<T>,
): Promise<T> {
  const before = provider.sent.length;
  try {
    return await attempt();
  } catch (error) {
    const url = provider.sent[before];
    if (!(error instanceof UnauthorizedError) || url === undefined) throw error;
    await transport.finishAuth(await person(url));
    return await attempt();
  }
}

/** Connects, with a person who decides when one is needed. */
export async function connectWithOAuth(
  mcpUrl: string,
  provider: MemoryProvider,
  person: (url: URL) => Promise<URLSearchParams>,
): Promise<Connected> {
  let connected = newClient(mcpUrl, provider);
  await authorized(connected, provider, person, async () => {
    // A transport starts once.
    const next = newClient(mcpUrl, provider);
    await next.client.connect(next.transport);
    connected = next;
  });
  return connected;
}
