/** Paths of the console's pages. */

/** The page of a device, or one below it. */
export function devicePath(name: string, below = ""): string {
  return `/console/devices/${encodeURIComponent(name)}${below === "" ? "" : `/${below}`}`;
}

/** The page of a grant, or one below it. */
export function grantPath(id: string, below = ""): string {
  return `/console/grants/${encodeURIComponent(id)}${below === "" ? "" : `/${below}`}`;
}
