/** Grant patterns as options. */
import { InvalidArgumentError } from "commander";

/** A URI may contain commas, so each pattern is an option of its own. */
export function collect(value: string, before: string[] | undefined): string[] {
  if (value === "") throw new InvalidArgumentError("A pattern cannot be empty.");
  return [...(before ?? []), value];
}

/** Names, which never contain commas: several may share one option. */
export function collectNames(value: string, before: string[] | undefined): string[] {
  return value.split(",").reduce((all: string[], pattern) => collect(pattern.trim(), all), before ?? []);
}
