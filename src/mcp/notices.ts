/**
 * How change notices look: towards a modern listener each carries the id of its listen request (MCP 2026-07-28,
 * Subscriptions), towards a legacy session they are plain notifications. Pure.
 */
import type { ListKind, Opened } from "../tunnel/notices.ts";
import { META } from "./meta.ts";

/** The messages of one listener, each as JSON text; null where its era has none. */
export interface NoticeShape {
  /** First of all, and before anything else. */
  opened(opened: Opened): string | null;
  list(what: ListKind): string;
  resource(uri: string): string;
  /** Last, when the relay ends the listener in order. */
  ended(): string | null;
}

/** Filter members of `subscriptions/listen`, by list. */
export const LIST_FILTERS: Readonly<Record<ListKind, string>> = {
  tools: "toolsListChanged",
  prompts: "promptsListChanged",
  resources: "resourcesListChanged",
};

const listMethod = (what: ListKind): string => `notifications/${what}/list_changed`;
const UPDATED = "notifications/resources/updated";

/** Notices of a modern listener. `idText` is the id of its request exactly as it was sent. */
export function modernNotices(idText: string): NoticeShape {
  const meta = `"_meta":{"${META.subscriptionId}":${idText}}`;
  const notice = (method: string, more = ""): string => `{"jsonrpc":"2.0","method":"${method}","params":{${meta}${more}}}`;
  return {
    opened: ({ lists, resources }) => {
      const honoured: Record<string, unknown> = Object.fromEntries(lists.map((what) => [LIST_FILTERS[what], true]));
      if (resources.length > 0) honoured["resourceSubscriptions"] = resources;
      return notice("notifications/subscriptions/acknowledged", `,"notifications":${JSON.stringify(honoured)}`);
    },
    list: (what) => notice(listMethod(what)),
    resource: (uri) => notice(UPDATED, `,"uri":${JSON.stringify(uri)}`),
    ended: () => `{"jsonrpc":"2.0","id":${idText},"result":{"resultType":"complete",${meta}}}`,
  };
}

/** Notices on a legacy session's own stream, which never carries a response (2025-11-25, Transports). */
export const LEGACY_NOTICES: NoticeShape = {
  opened: () => null,
  list: (what) => `{"jsonrpc":"2.0","method":"${listMethod(what)}"}`,
  resource: (uri) => `{"jsonrpc":"2.0","method":"${UPDATED}","params":{"uri":${JSON.stringify(uri)}}}`,
  ended: () => null,
};
