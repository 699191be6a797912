/** A Node of the oldest line that agents run on. */
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";

const PLACES = [process.env["LONGLINE_NODE_20"], "/usr/bin/node", "/usr/local/bin/node"];

/** Its path. Without one what needs it cannot be tested, and the failure says how to get it. */
export function node20(): string {
  for (const place of PLACES) {
    if (place === undefined || !existsSync(place)) continue;
    if (execFileSync(place, ["--version"], { encoding: "utf8" }).startsWith("v20.")) return place;
  }
  throw new Error("No Node 20 in /usr/bin or /usr/local/bin: install one and name it in LONGLINE_NODE_20 to run this test.");
}
