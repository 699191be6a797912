/** What makes two configurations of an upstream the same one. Pure. */
import type { Naming, UpstreamConfig } from "../types.ts";

/** Names an upstream across configurations. Each declared tool is one of its own, so that changing one leaves the others alone. */
export function configKey(config: UpstreamConfig): string {
  return config.kind === "declared" ? `${config.alias}.${config.tool.name}` : config.alias;
}

/** Prefixes only change how names show: they do not restart anything. */
export function namingOf(config: UpstreamConfig): Naming {
  if (config.kind !== "stdio" && config.kind !== "http") return {};
  const { prefix, resourcePrefix } = config;
  return { ...(prefix === undefined ? {} : { prefix }), ...(resourcePrefix === undefined ? {} : { resourcePrefix }) };
}

/** Everything but the naming, as text. */
export function configText(config: UpstreamConfig): string {
  return JSON.stringify({ ...config, prefix: undefined, resourcePrefix: undefined });
}
