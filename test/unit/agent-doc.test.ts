/** docs/agent.md: its examples can be used, and it names every key. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readConfig } from "../../src/agent/config/config-file.ts";
import { ToolSection } from "../../src/agent/config/declared-section.ts";
import { FeedSection } from "../../src/agent/config/feed-section.ts";
import { UpstreamSection } from "../../src/agent/config/upstream-section.ts";

const page = readFileSync(join(import.meta.dirname, "../../docs/agent.md"), "utf8");
const examples = [...page.matchAll(/```toml\n(.*?)```/gs)].map(([, text = ""]) => text);

test("every example is a configuration without mistakes", () => {
  expect(examples.length).toBeGreaterThanOrEqual(3);
  for (const text of examples) expect(() => readConfig(text, "docs/agent.md")).not.toThrow();
  // They can also stand in one file.
  expect(readConfig(examples.join("\n"), "docs/agent.md").tools.size).toBeGreaterThanOrEqual(6);
});

test("every key is in a table, and in an example", () => {
  const rows = [...page.matchAll(/^\| (`[^|]*) \|/gm)].map(([, keys = ""]) => keys).join(" ");
  for (const section of [UpstreamSection, ToolSection, FeedSection]) {
    for (const key of Object.keys(section.shape)) {
      expect(rows.includes(`\`${key}\``) || rows.includes(`\`${key}.`), key).toBe(true);
      expect(new RegExp(`\\b${key}\\b`).test(examples.join("\n")), key).toBe(true);
    }
  }
});
