/** The lock of a state or data directory. */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { holderOf, lockProcess } from "../../src/agent/process-lock.ts";
import { stateDir } from "./harness.ts";

const inUse = ({ pid }: { pid: number }) => `in use by process ${pid}`;

describe("a lock", () => {
  it("is had by one at a time, also within one process, and is free again after its release", () => {
    const path = join(stateDir(), "lock");
    const lock = lockProcess(path, inUse);
    expect(lock.tookOver).toBe(false);
    expect(() => lockProcess(path, inUse)).toThrow(`in use by process ${process.pid}`);
    lock.release();
    expect(holderOf(path)).toBeUndefined();
    lockProcess(path, inUse).release();
  });

  it("says where its process listens, once that is known", () => {
    const path = join(stateDir(), "lock");
    const lock = lockProcess(path, inUse);
    expect(holderOf(path)).toMatchObject({ pid: process.pid });
    expect(holderOf(path)?.url).toBeUndefined();
    lock.publish("http://127.0.0.1:1");
    expect(holderOf(path)?.url).toBe("http://127.0.0.1:1");
    lock.release();
    expect(readdirSync(join(path, ".."))).toEqual([]);
  });

  it.each([
    ["of a process that is gone", `{"pid":4194303,"started":"1"}`],
    ["of another process that has the same id by now", `{"pid":1,"started":"no such time"}`],
    ["that nobody can read", "garbage"],
    ["of an earlier process with this one's id", JSON.stringify({ pid: process.pid })],
  ])("%s is taken over", (_what, text) => {
    const path = join(stateDir(), "lock");
    writeFileSync(path, text);
    const lock = lockProcess(path, inUse);
    expect(lock.tookOver).toBe(true);
    expect(readFileSync(path, "utf8")).toContain(`"pid":${process.pid}`);
    lock.release();
  });

  it("of somebody else is left alone by a late release", () => {
    const path = join(stateDir(), "lock");
    const lock = lockProcess(path, inUse);
    writeFileSync(path, `{"pid":1}`);
    lock.release();
    expect(readFileSync(path, "utf8")).toBe(`{"pid":1}`);
  });
});
