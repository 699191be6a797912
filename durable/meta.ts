/** Table `meta`: single facts of the device and its tunnel, typed. Times are epoch ms. */
import { z } from "zod";
import { UpstreamState } from "../src/tunnel/frames.ts";
import { ListKind, ListVersions } from "../src/tunnel/notices.ts";

const Facts = z.object({
  deviceId: z.string(),
  /** Name and public MCP URL as the last dial-in was told; labels only. */
  name: z.string(),
  mcpUrl: z.string(),
  /** Generation of the newest tunnel. */
  generation: z.number(),
  agentVersion: z.string(),
  /** The machine that has the device, and since when no other had it. */
  installation: z.object({ id: z.string(), since: z.number() }),
  /** Upstreams as the agent last told them. */
  upstreams: z.array(UpstreamState),
  /** Set while the owner has paused the device. */
  pausedAt: z.number().nullable(),
  lastSeenAt: z.number(),
  lastCallAt: z.number(),
  /** When the wake URL was last posted to. */
  wokenAt: z.number(),
  /** When another installation was refused. */
  rivalAt: z.number(),
  /** Newest grant revision that was pulled from D1; pushed ones do not count, as others may be missing before them. */
  pulledRevision: z.number(),
  /** Until when expired grants were ended. */
  expiredUntil: z.number(),
  /** Digest of the stored catalogue as the agent calls it; null when a list answer changed it since. */
  catalogueDigest: z.string().nullable(),
  /** How often each list was told to have changed. */
  listVersions: ListVersions,
  /** Lists that the catalogue took over from an answer, so that a catalogue of the agent will not differ in them. */
  untoldLists: z.array(ListKind),
  /** What D1 was last asked to record of the newest generation. */
  isShownOnline: z.boolean(),
});

/** The facts by name. */
export type Facts = z.infer<typeof Facts>;

export class Meta {
  readonly #sql: SqlStorage;
  readonly #cache = new Map<keyof Facts, unknown>();

  constructor(sql: SqlStorage) {
    this.#sql = sql;
  }

  /** A fact, or undefined when it was never written. A value of an older shape counts as never written. */
  get<N extends keyof Facts>(name: N): Facts[N] | undefined {
    if (!this.#cache.has(name)) this.#cache.set(name, this.#read(name));
    return this.#cache.get(name) as Facts[N] | undefined;
  }

  /** Writes a fact if it is not what is stored. */
  set<N extends keyof Facts>(name: N, value: Facts[N]): void {
    const text = JSON.stringify(value);
    if (JSON.stringify(this.get(name)) === text) return;
    this.#sql.exec("INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value", name, text);
    this.#cache.set(name, value);
  }

  #read<N extends keyof Facts>(name: N): Facts[N] | undefined {
    const [row] = this.#sql.exec<{ value: string }>("SELECT value FROM meta WHERE name = ?", name).toArray();
    if (row === undefined) return undefined;
    const parsed = Facts.shape[name].safeParse(JSON.parse(row.value));
    return parsed.success ? (parsed.data as Facts[N]) : undefined;
  }
}
