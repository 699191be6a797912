/** Reads a progress notification for the agent's own log; the caller gets it as it came. Pure. */
import { z } from "zod";
import { TUNNEL } from "../limits.ts";

const Progress = z.looseObject({ progress: z.number(), total: z.number().optional(), message: z.string().optional() });

/** How far a call is, or undefined when the notification does not say. */
export function readProgress(params: Uint8Array): { progress: number; total: number | undefined; message: string | undefined } | undefined {
  if (params.length > TUNNEL.minFrameBytes) return undefined; // Nobody reads that much about a step.
  try {
    const { progress, total, message } = Progress.parse(JSON.parse(new TextDecoder().decode(params)));
    return { progress, total, message };
  } catch {
    return undefined; // It is the caller's to judge.
  }
}
