/** A service of the person's own system that keeps an agent running, before it has the form of any system. */

/** What to run. Holds no secret: keys and credentials are named by their files. */
export interface ServicePlan {
  /** Name of the service: lower-case letters, digits and hyphens. */
  name: string;
  description: string;
  /** The program, absolute, and its arguments. */
  argv: readonly string[];
  cwd: string;
  env: Readonly<Record<string, string>>;
}

/** How one system keeps a service. */
export interface ServiceKind {
  /** What a person calls it. */
  system: string;
  /** False where nothing but the text was ever checked: said so when it is shown. */
  isTested: boolean;
  /** Where the definition is kept. */
  path(name: string): string;
  render(plan: ServicePlan): string;
  encoding: "utf8" | "utf16le";
  /** Mode of the file; one that is run by itself has to be executable. */
  mode: number;
  /** Commands that start it after it was written. */
  start(name: string): readonly (readonly string[])[];
  /** Commands that end it before its file is removed. */
  stop(name: string): readonly (readonly string[])[];
  /** Commands after the file is gone. */
  removed(name: string): readonly (readonly string[])[];
  /** What else a person should know; one line. */
  hint: string;
}
