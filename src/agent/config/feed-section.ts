/** The sections `[feeds.NAME]`: streams of JSON messages that become resources. */
import { z } from "zod";
import { isAddress, Text } from "./names.ts";

export const FeedSection = z.strictObject({
  /** ws, wss: a WebSocket. http, https: server-sent events. */
  url: z.string().refine((url) => isAddress(url, ["ws:", "wss:", "http:", "https:"]), {
    error: "must look like ws://127.0.0.1:9000/events or http://127.0.0.1:9000/events, without credentials",
  }),
  /** The resource's address. */
  uri: z
    .string()
    .max(8_192)
    .refine((uri) => URL.canParse(uri), { error: "must be an address, such as events://launcher" }),
  title: Text.optional(),
  description: Text.optional(),
  headersFile: Text.optional(),
  /** Said on a WebSocket as soon as it is open, for servers that tell nothing before. A text `{uuid}` becomes a random one. */
  hello: z.record(z.string(), z.json()).optional(),
});
export type FeedSection = z.infer<typeof FeedSection>;
