/** The version of this package. */
import { VERSION } from "../version.ts";

/** The version in `package.json`. */
export function packageVersion(): string {
  return VERSION;
}
