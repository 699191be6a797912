/** JSON pointers (RFC 6901) that also lead into JSON inside a string, as some servers wrap their answers. Pure. */

/** True for a pointer: empty, or parts that each begin with `/`. */
export function isPointer(text: string): boolean {
  return text === "" || /^(?:\/(?:[^~/]|~[01])*)+$/.test(text);
}

/** What is at a place; undefined when there is nothing. */
export function valueAt(value: unknown, pointer: string): unknown {
  let at = value;
  for (const part of pointer.split("/").slice(1)) {
    const key = part.replaceAll("~1", "/").replaceAll("~0", "~");
    const holder = typeof at === "string" ? parsed(at) : at;
    if (typeof holder !== "object" || holder === null || !Object.hasOwn(holder, key)) return undefined;
    at = (holder as Record<string, unknown>)[key];
  }
  return at;
}

/** A text that holds JSON, as its value; any other as it is. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
