/** The log level of one legacy instance: the most verbose that any call wanted; each call filters by its own. */
import { isLogLevel, isMoreVerbose } from "./revisions.ts";

export class LogLevel {
  readonly #set: (level: string) => Promise<void>;
  #current: string | undefined;
  #setting: Promise<void> = Promise.resolve();

  constructor(set: (level: string) => Promise<void>) {
    this.#set = set;
  }

  /** Resolves when the instance logs at least at this level, or refused to. */
  async want(level: string | undefined): Promise<void> {
    if (level === undefined || !isLogLevel(level)) return;
    if (isMoreVerbose(level, this.#current)) {
      this.#current = level;
      this.#setting = this.#set(level);
    }
    await this.#setting;
  }
}
