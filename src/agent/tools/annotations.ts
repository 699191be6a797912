/** What the built-in tools say of themselves (MCP tool annotations). */

/** It looks and changes nothing. What it sees changes by itself. */
export const READS = { readOnlyHint: true, destructiveHint: false, idempotentHint: false, openWorldHint: false };

/** It changes something that can be changed back. */
export const CHANGES = { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: false };

/** It can do anything. */
export const DOES_ANYTHING = { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true };
