/** What an outcome is shaped for: the caller's era, id and capabilities, and the method it answers. */
import type { JsonObject } from "./json-rpc.ts";
import type { MethodRule } from "./methods.ts";

export interface Shape {
  era: "modern" | "legacy";
  /** The caller's id as JSON text. */
  idText: string;
  method: string;
  target: string | undefined;
  rule: MethodRule;
  /** The caller's session is at the stateless revision: its results carry that revision's members. */
  isModernSession?: boolean;
  /** What a modern caller declared with this request; a legacy caller's come with its session. */
  capabilities: JsonObject;
}
