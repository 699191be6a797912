/** What the console reads of a device's tools. */
import type { OfferedTool } from "../../durable/rpc.ts";
import { tellObject } from "../auth/tell-object.ts";
import type { MarkedTool } from "../console/device-page.tsx";
import { findToolLook, recordToolLook } from "../db/tool-looks.ts";
import type { Env } from "../env.ts";

/** The tools a device offers, as last known; null while it never said, or when its object does not answer. */
export async function toolsOf(env: Env, deviceId: string): Promise<OfferedTool[] | null> {
  const told = await tellObject(env, deviceId, (stub) => stub.offeredTools());
  return told.state === "told" ? told.value : null;
}

async function digestsOf(env: Env, deviceId: string): Promise<Map<string, string> | null> {
  const told = await tellObject(env, deviceId, (stub) => stub.toolDigests());
  return told.state === "told" && told.value !== null ? new Map(told.value) : null;
}

/** The tools with what is new or changed since this person's last look. Before a first look nothing is marked. */
export async function markedTools(
  env: Env,
  deviceId: string,
  member: string,
): Promise<{ tools: MarkedTool[] | null; lookedAt: number | null }> {
  const [tools, digests, look] = await Promise.all([
    toolsOf(env, deviceId),
    digestsOf(env, deviceId),
    findToolLook(env.DB, member, deviceId),
  ]);
  if (tools === null) return { tools, lookedAt: look?.lookedAt ?? null };
  const markOf = (name: string): MarkedTool["mark"] => {
    if (look === null || digests === null) return undefined;
    const seen = look.tools.get(name);
    if (seen === undefined) return "new";
    return seen === digests.get(name) ? undefined : "changed";
  };
  return { tools: tools.map((tool) => ({ ...tool, mark: markOf(tool.name) })), lookedAt: look?.lookedAt ?? null };
}

/** Records that a person has seen the tools as they are now. */
export async function lookAtTools(env: Env, deviceId: string, member: string): Promise<void> {
  const tools = await digestsOf(env, deviceId);
  if (tools !== null) await recordToolLook(env.DB, { member, deviceId, lookedAt: Date.now(), tools });
}
