import { describe, expect, it } from "vitest";
import pkg from "../../package.json" with { type: "json" };
import { bearerToken } from "../../src/auth/bearer.ts";
import { acceptedOrigins, mcpUrl, originOf, resourceMetadataUrl } from "../../src/auth/origins.ts";
import {
  constantTimeEqual,
  hashSecret,
  isOwnerToken,
  mintDeviceKey,
  mintOwnerToken,
  parseDeviceKey,
  randomId,
} from "../../src/auth/secrets.ts";
import { VerifiedTokens } from "../../src/auth/verified-tokens.ts";
import { EDGE } from "../../src/limits.ts";
import { redact } from "../../src/log.ts";
import { isDeviceName } from "../../src/policy/device-name.ts";
import { VERSION } from "../../src/version.ts";

it("the version is that of the package", () => {
  expect(VERSION).toBe(pkg.version);
});

describe("secrets", () => {
  it("hash as every other SHA-256 in base64url", async () => {
    expect(await hashSecret("abc")).toBe("ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0");
  });

  it("name their device and never come twice", () => {
    const id = randomId();
    const key = mintDeviceKey(id);
    expect(parseDeviceKey(key)).toEqual({ deviceId: id });
    expect(mintDeviceKey(id)).not.toBe(key);
    expect(isOwnerToken(mintOwnerToken())).toBe(true);
  });

  it.each(["", "llk_", "llk__x", `llk_${"0".repeat(32)}_short`, `llk_../x_${"A".repeat(43)}`, `llo_${"A".repeat(43)}`])(
    "%j is no device key",
    (text) => {
      expect(parseDeviceKey(text)).toBeUndefined();
    },
  );

  it.each([
    ["a", "a", true],
    ["", "", true],
    ["a", "b", false],
    ["a", "ab", false],
    ["", "a", false],
    ["a", "", false],
    ["aa", "a", false],
    ["é", "é", true],
  ])("%j equals %j: %s", (a, b, equal) => {
    expect(constantTimeEqual(a, b)).toBe(equal);
  });
});

function read(value: string): string | undefined {
  return bearerToken(new Headers({ Authorization: value }));
}

describe("a bearer credential", () => {
  it("is the token68 after the scheme", () => {
    expect(read("Bearer abc.d-e_f~g+h/i==")).toBe("abc.d-e_f~g+h/i==");
    expect(read("bearer  abc ")).toBe("abc");
    expect(bearerToken(new Headers())).toBeUndefined();
  });

  it.each(["", "Bearer", "Bearer ", "Basic abc", "Bearer a b", "Bearer a, Bearer b", "Bearer é", "xBearer a"])("is not in %j", (value) => {
    expect(bearerToken({ get: () => value } as unknown as Headers)).toBeUndefined();
  });

  it("ends at its limit", () => {
    expect(read(`Bearer ${"a".repeat(EDGE.maxTokenLength)}`)).toHaveLength(EDGE.maxTokenLength);
    expect(read(`Bearer ${"a".repeat(EDGE.maxTokenLength + 1)}`)).toBeUndefined();
  });
});

describe("origins", () => {
  it("of loopback go by all of its names on their port, others by their own", () => {
    expect(acceptedOrigins(["https://a.test", "http://127.0.0.1:80"])).toEqual([
      "https://a.test",
      "http://127.0.0.1:80",
      "http://127.0.0.1",
      "http://localhost",
      "http://[::1]",
    ]);
    expect(acceptedOrigins(["http://[::1]:9"])).toEqual(["http://[::1]:9", "http://127.0.0.1:9", "http://localhost:9"]);
    expect(acceptedOrigins(["http://localhost.evil.test"])).toEqual(["http://localhost.evil.test"]);
  });

  it("are found by the request's host, by its scheme too where that decides", () => {
    const accepted = ["https://a.test", "http://b.test", "https://b.test"];
    expect(originOf("http://a.test/x", accepted)).toBe("https://a.test");
    expect(originOf("https://b.test/x", accepted)).toBe("https://b.test");
    expect(originOf("https://A.test:443/x", accepted)).toBe("https://a.test");
    expect(originOf("https://c.test/", accepted)).toBeUndefined();
  });

  it("make the device's URLs", () => {
    expect(mcpUrl("https://a.test", "pi")).toBe("https://a.test/mcp/pi");
    expect(resourceMetadataUrl("https://a.test", "pi")).toBe("https://a.test/.well-known/oauth-protected-resource/mcp/pi");
    expect(mcpUrl("https://a.test", '"/../')).toBe("https://a.test/mcp/%22%2F..%2F");
  });
});

describe("verified tokens", () => {
  it("are bounded, and the least recently used one leaves first", () => {
    const tokens = new VerifiedTokens<number>(2);
    tokens.set("a", 1);
    tokens.set("b", 2);
    expect(tokens.get("a")).toBe(1);
    tokens.set("c", 3);
    expect([tokens.get("a"), tokens.get("b"), tokens.get("c"), tokens.size]).toEqual([1, undefined, 3, 2]);
    tokens.delete("a");
    expect(tokens.size).toBe(1);
  });
});

describe("the log", () => {
  const jwt = "eyJhbGciOiJFZERTQSJ9.eyJhIjoxfQ.c2lnbmF0dXJl";
  const key = mintDeviceKey(randomId());

  it("hides secrets by their form, wherever they stand", () => {
    const fields = {
      path: `/x/${key}`,
      list: [`Bearer ${jwt}`, mintOwnerToken()],
      deep: { note: `see ${jwt}!`, header: "Bearer opaque-token" },
    };
    const text = JSON.stringify(redact(fields));
    for (const secret of [key, jwt, "llo_", "opaque-token", "c2lnbmF0dXJl"]) expect(text).not.toContain(secret);
    expect(text).toContain("see [redacted]!");
  });

  it("hides members by their name and keeps the others", () => {
    const fields = {
      authorization: "x1",
      Cookie: "x2",
      deviceKey: "x3",
      token: "x4",
      clientSecret: "x5",
      privateJwk: { d: "x6" },
      id: "kept",
      n: 0,
    };
    expect(JSON.stringify(redact(fields))).not.toMatch(/x[1-6]/);
    expect(redact(fields)).toMatchObject({ id: "kept", n: 0 });
  });

  it("bounds length and depth, and shows an error without its source text", () => {
    let nested: unknown = "bottom";
    for (let i = 0; i < 50; i++) nested = { nested };
    expect(JSON.stringify(redact({ nested }))).not.toContain("bottom");
    expect((redact("a".repeat(10_000)) as string).length).toBe(500);
    expect(redact({ error: new TypeError(`bad ${key}`) })).toMatchObject({ error: { name: "TypeError", message: "bad [redacted]" } });
  });
});

it.each(["a b", "A", "", "a\n", "ä", "a/b", ".."])("%j is no device name", (name) => {
  expect(isDeviceName(name)).toBe(false);
});
