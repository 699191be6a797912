/** Driving the pages as a browser does: forms with an Origin, and a cookie that comes back. */
import { ORIGIN, type Relay } from "./api-support.ts";

export interface Browser {
  /** The Cookie header as the browser would send it now. */
  cookie: string;
  get(path: string): Promise<Response>;
  /** Posts a form from a page of the relay unless another origin is named; null leaves the header out. */
  post(path: string, fields: Record<string, string>, origin?: string | null): Promise<Response>;
}

/** A browser without cookies. */
export function browser(relay: Relay, origin = ORIGIN): Browser {
  const self: Browser = {
    cookie: "",
    get: (path) => keep(relay.send(new URL(path, origin).href, { headers: cookies(), redirect: "manual" })),
    post: (path, fields, from = origin) =>
      keep(
        relay.send(new URL(path, origin).href, {
          method: "POST",
          headers: {
            ...cookies(),
            "Content-Type": "application/x-www-form-urlencoded",
            ...(from === null ? {} : { Origin: from }),
          },
          body: new URLSearchParams(fields).toString(),
          redirect: "manual",
        }),
      ),
  };
  const cookies = (): Record<string, string> => (self.cookie === "" ? {} : { Cookie: self.cookie });
  const keep = async (answer: Promise<Response>): Promise<Response> => {
    const response = await answer;
    for (const line of response.headers.getSetCookie()) self.cookie = /Max-Age=0/i.test(line) ? "" : (line.split(";")[0] ?? "");
    return response;
  };
  return self;
}

/** A browser that is signed in with a token. */
export async function signedIn(relay: Relay, token: string): Promise<Browser> {
  const self = browser(relay);
  const response = await self.post("/sign-in", { token, next: "/account" });
  if (response.status !== 303) throw new Error(`signing in gave ${response.status}`);
  return self;
}
