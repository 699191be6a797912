/** docs/threat-model.md proves each control by a test that is there. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const ROOT = join(import.meta.dirname, "../..");
const page = readFileSync(join(ROOT, "docs/threat-model.md"), "utf8");
const controls = page.slice(page.indexOf("## Controls"), page.indexOf("## An attack"));

test("every control has a proof, and every test it names exists", () => {
  const rows = [...controls.matchAll(/^\| (?!Control|-)(.+?) \| (.+) \|$/gm)];
  expect(rows.length).toBeGreaterThan(45);
  for (const [, control = "", proof = ""] of rows) {
    const proofs = [...proof.matchAll(/`(test\/[^`]+\.test\.ts)` “([^”]+)”/g)];
    expect(proofs.length, control).toBe(proof.split("”; ").length);
    for (const [, file = "", text = ""] of proofs) {
      expect(existsSync(join(ROOT, file)), file).toBe(true);
      expect(readFileSync(join(ROOT, file), "utf8").includes(text), `${file}: ${text}`).toBe(true);
    }
  }
});

test("every actor has a control", () => {
  for (const actor of ["stranger", "teammate", "token or signing key", "device key", "web page", "tool server", "operator"])
    expect(controls).toMatch(new RegExp(`^### .*${actor}`, "m"));
});
