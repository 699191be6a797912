/**
 * Methods of extensions that may pass, for full grants only: the one table, for the edge that forwards them and for the
 * object that decides. None yet: a method is listed once the ids it hands out are bound to grants.
 */
export interface ExtensionRule {
  eras: readonly ("modern" | "legacy")[];
  /** Member of params that names the target. */
  target?: "name" | "uri";
}

/** The rules by method. */
export const EXTENSIONS: ReadonlyMap<string, ExtensionRule> = new Map<string, ExtensionRule>();
