/** What of the relay's log a person sees who only tries it out: what went wrong, not each request. */
import { z } from "zod";

const Event = z.looseObject({ level: z.string() });

/** False for the relay's own events of level `info`; anything else it prints is worth a look. */
export function isWorthShowing(line: string): boolean {
  try {
    return Event.parse(JSON.parse(line)).level !== "info";
  } catch {
    // Not an event of ours: the runtime itself has something to say.
    return true;
  }
}
