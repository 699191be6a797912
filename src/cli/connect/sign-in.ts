/**
 * Tokens by signing in at the relay (OAuth 2.1 with PKCE, MCP authorization): the official client's flow, with a browser,
 * a loopback redirect, and a private file in which tokens outlive the process.
 */
import { randomBytes } from "node:crypto";
import type {
  OAuthClientMetadata,
  OAuthClientProvider,
  StoredOAuthClientInformation,
  StoredOAuthTokens,
} from "@modelcontextprotocol/client";
import { routedFetch } from "../../agent/routed-fetch.ts";
import { ApiError } from "../../errors.ts";
import { CONNECT } from "../../limits.ts";
import { cleanText } from "../../policy/clean-text.ts";
import { listenForCode, type Callback } from "./callback.ts";
import type { TokenSource } from "./relay-http.ts";
import { changeSignedIn, readSignedIn } from "./sign-in-store.ts";

export interface SignInOptions {
  mcpUrl: URL;
  /** The private file. */
  path: string;
  /** Shows the page on which the person decides. */
  show: (url: URL) => void;
}

/** Tokens of whoever signs in; asked for when the first one is needed. */
export class SignIn implements TokenSource {
  readonly #options: SignInOptions;
  #running: Promise<string> | undefined;

  constructor(options: SignInOptions) {
    this.#options = options;
  }

  async current(): Promise<string> {
    const { tokens, expiresAt } = await readSignedIn(this.#options.path);
    const isFresh = expiresAt === undefined || expiresAt - Date.now() > CONNECT.freshMs;
    return tokens !== undefined && isFresh ? tokens.access_token : await this.#authorize();
  }

  async renewed(refused: string): Promise<string | undefined> {
    // Another process may have renewed it.
    const { tokens } = await readSignedIn(this.#options.path);
    return tokens !== undefined && tokens.access_token !== refused ? tokens.access_token : await this.#authorize();
  }

  /** Refreshes, or asks the person; once for all that wait. */
  async #authorize(): Promise<string> {
    this.#running ??= this.#run().finally(() => (this.#running = undefined));
    return await this.#running;
  }

  async #run(): Promise<string> {
    const { path, mcpUrl } = this.#options;
    const { auth } = await import("@modelcontextprotocol/client");
    const kept = await readSignedIn(path);
    using callback = await listenForCode(kept.redirectUrl);
    // A client is registered with its redirect address.
    if (kept.redirectUrl !== callback.url)
      await changeSignedIn(path, ({ client: _client, ...rest }) => ({ ...rest, redirectUrl: callback.url }));
    const provider = new FileProvider(path, callback, this.#options.show);
    try {
      if ((await auth(provider, { serverUrl: mcpUrl, fetchFn: routedFetch })) === "REDIRECT") {
        const params = await callback.visited(provider.expectedState);
        const code = params.get("code");
        if (code === null) throw refused(params);
        const iss = params.get("iss");
        await auth(provider, { serverUrl: mcpUrl, fetchFn: routedFetch, authorizationCode: code, ...(iss === null ? {} : { iss }) });
      }
    } catch (error) {
      throw error instanceof ApiError ? error : notPossible(mcpUrl, error);
    }
    const { tokens } = await readSignedIn(path);
    if (tokens === undefined) throw notPossible(mcpUrl, undefined);
    return tokens.access_token;
  }
}

/** The flow's memory: a file for what lasts, this object for one sign-in. */
class FileProvider implements OAuthClientProvider {
  readonly #path: string;
  readonly #callback: Callback;
  readonly #show: (url: URL) => void;
  readonly expectedState = randomBytes(16).toString("base64url");
  #verifier = "";

  constructor(path: string, callback: Callback, show: (url: URL) => void) {
    this.#path = path;
    this.#callback = callback;
    this.#show = show;
  }

  get redirectUrl(): string {
    return this.#callback.url;
  }

  get clientMetadata(): OAuthClientMetadata {
    return {
      client_name: "longline connect",
      redirect_uris: [this.#callback.url],
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      token_endpoint_auth_method: "none",
    };
  }

  state(): string {
    return this.expectedState;
  }

  async clientInformation(): Promise<StoredOAuthClientInformation | undefined> {
    return (await readSignedIn(this.#path)).client;
  }

  async saveClientInformation(client: StoredOAuthClientInformation): Promise<void> {
    await changeSignedIn(this.#path, (kept) => ({ ...kept, client: { ...client } }));
  }

  async tokens(): Promise<StoredOAuthTokens | undefined> {
    return (await readSignedIn(this.#path)).tokens;
  }

  async saveTokens(tokens: StoredOAuthTokens): Promise<void> {
    const expiresAt = tokens.expires_in === undefined ? undefined : Date.now() + tokens.expires_in * 1000;
    await changeSignedIn(this.#path, ({ expiresAt: _old, ...kept }) => ({
      ...kept,
      tokens: { ...tokens },
      ...(expiresAt === undefined ? {} : { expiresAt }),
    }));
  }

  redirectToAuthorization(url: URL): void {
    this.#show(url);
  }

  saveCodeVerifier(verifier: string): void {
    this.#verifier = verifier;
  }

  codeVerifier(): string {
    return this.#verifier;
  }

  async invalidateCredentials(what: "all" | "client" | "tokens" | "verifier" | "discovery"): Promise<void> {
    if (what !== "all" && what !== "client" && what !== "tokens") return;
    await changeSignedIn(this.#path, ({ client, tokens, ...kept }) => ({
      ...kept,
      ...(what === "tokens" && client !== undefined ? { client } : {}),
      ...(what === "client" && tokens !== undefined ? { tokens } : {}),
    }));
  }
}

function refused(params: URLSearchParams): ApiError {
  const why = params.get("error_description") ?? params.get("error") ?? "no reason given";
  return new ApiError("not_authorised", `The sign-in was refused: ${cleanText(why)}.`);
}

function notPossible(mcpUrl: URL, cause: unknown): ApiError {
  return new ApiError(
    "not_authorised",
    `Signing in at ${mcpUrl.origin} did not work. Pass a token in LONGLINE_TOKEN; the device's owner makes one with \`longline token create\`.`,
    { cause },
  );
}
