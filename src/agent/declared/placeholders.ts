/** `{name}` in the texts of a declared tool stands for an argument of the call; `{{name}}` is `{name}` as it is. Pure. */

/** All arguments at once, in the body of a request. */
export const ALL_ARGUMENTS = "*";

export type Piece = { text: string } | { name: string };

const PLACEHOLDER = /\{\{([A-Za-z_][\w.-]*|\*)\}\}|\{([A-Za-z_][\w.-]*|\*)\}/g;

/** A text in pieces. */
export function piecesOf(text: string): Piece[] {
  const pieces: Piece[] = [];
  let from = 0;
  const add = (literal: string) => {
    const last = pieces.at(-1);
    if (last && "text" in last) last.text += literal;
    else if (literal !== "") pieces.push({ text: literal });
  };
  for (const match of text.matchAll(PLACEHOLDER)) {
    add(text.slice(from, match.index));
    from = match.index + match[0].length;
    if (match[2] === undefined) add(`{${match[1]}}`);
    else pieces.push({ name: match[2] });
  }
  add(text.slice(from));
  return pieces;
}

/** The names in a text. */
export function namesIn(text: string): string[] {
  return piecesOf(text).flatMap((piece) => ("name" in piece ? [piece.name] : []));
}

/** The names in every text of a JSON value. */
export function namesInValue(value: unknown): string[] {
  if (typeof value === "string") return namesIn(value);
  if (typeof value !== "object" || value === null) return [];
  return Object.values(value).flatMap(namesInValue);
}

/** The text with each placeholder replaced by what `textOf` gives. */
export function fill(text: string, textOf: (name: string) => string): string {
  return piecesOf(text)
    .map((piece) => ("text" in piece ? piece.text : textOf(piece.name)))
    .join("");
}

/** An argument as text: texts as they are, everything else as JSON. */
export function argumentText(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}
