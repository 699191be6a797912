/** Requests that carry a mark in every header somebody could let through, with every answer kept for a look afterwards. */

/** What a request must not leave anywhere, by name. */
export class Marks {
  readonly #all = new Map<string, string>();
  #count = 0;

  /** A new mark: a text that occurs nowhere else. */
  make(name: string): string {
    this.#count += 1;
    const mark = `canary${this.#count}x${crypto.randomUUID().replaceAll("-", "")}`;
    this.#all.set(name, mark);
    return mark;
  }

  /** Adds a secret that somebody else made. */
  add(name: string, secret: string): string {
    if (secret.length < 16) throw new Error(`${name} is too short to be found by itself`);
    this.#all.set(name, secret);
    return secret;
  }

  /** The names of the marks that are in a text or in bytes, but for those in `allowed`. */
  in(place: string | Buffer, allowed: readonly string[] = []): string[] {
    return [...this.#all].filter(([name, mark]) => !allowed.includes(name) && place.includes(mark)).map(([name]) => name);
  }

  /** How many there are. */
  get size(): number {
    return this.#all.size;
  }
}

/** Headers that a client, a proxy or Cloudflare could add, each with a mark of its own. */
export function markedHeaders(marks: Marks): Record<string, string> {
  const names = [
    "CF-Connecting-IP",
    "CF-Ray",
    "CF-IPCountry",
    "CF-Visitor",
    "CF-Access-Jwt-Assertion",
    "MF-Original-URL",
    "MF-Custom-Service",
    "X-Forwarded-For",
    "X-Forwarded-Host",
    "X-Forwarded-Proto",
    "X-Real-IP",
    "Forwarded",
    "True-Client-IP",
    "X-Api-Key",
    "Proxy-Authorization",
    "X-Request-Id",
    "User-Agent",
    "Referer",
  ];
  return Object.fromEntries(names.map((name) => [name, marks.make(name)]));
}

/** What is sent with the marks. */
export type MarkedRequest = Omit<RequestInit, "headers"> & { headers?: Record<string, string> };

/** A client whose answers are kept: status line, headers and body. */
export class MarkedClient {
  readonly #marks: Record<string, string>;
  readonly #cookie: string;
  readonly answers: { to: string; text: string }[] = [];
  /** The session's cookie, once signed in. */
  session = "";

  constructor(marks: Marks) {
    this.#marks = markedHeaders(marks);
    this.#cookie = `other=${marks.make("a foreign cookie")}`;
  }

  /** Sends a request with all marks; its answer is kept and given. */
  async send(url: string, init: MarkedRequest = {}): Promise<{ response: Response; text: string }> {
    const answered = await this.open(url, init);
    const text = await answered.text();
    const headers = [...answered.headers].map(([name, value]) => `${name}: ${value}`).join("\n");
    this.answers.push({ to: `${init.method ?? "GET"} ${new URL(url).pathname}`, text: `${answered.status}\n${headers}\n${text}` });
    return { response: answered, text };
  }

  /** The same, for an answer that is to hold a secret: it is given and not kept. */
  async get(url: string, init: MarkedRequest = {}): Promise<string> {
    const answered = await this.open(url, init);
    if (answered.status >= 400) throw new Error(`${url} gave ${answered.status}: ${await answered.text()}`);
    return await answered.text();
  }

  /** The same, with the body left to the caller. */
  async open(url: string, init: MarkedRequest = {}): Promise<Response> {
    const cookie = [this.session, this.#cookie].filter((part) => part !== "").join("; ");
    return await fetch(url, { redirect: "manual", ...init, headers: { ...this.#marks, Cookie: cookie, ...init.headers } });
  }
}
