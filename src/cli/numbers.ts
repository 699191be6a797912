/** Numbers as options. Commander reports an InvalidArgumentError as a usage error that names the option. */
import { InvalidArgumentError } from "commander";

const MAX_PORT = 65_535;

/** A TCP port; 0 means any free one. */
export function parsePort(text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN;
  if (!(port <= MAX_PORT)) throw new InvalidArgumentError(`Give a port from 0 to ${MAX_PORT}; 0 is any free one.`);
  return port;
}

/** A whole number of at least 1. */
export function parseCount(text: string): number {
  const count = /^\d{1,9}$/.test(text) ? Number(text) : 0;
  if (count < 1) throw new InvalidArgumentError("Give a whole number of at least 1.");
  return count;
}
