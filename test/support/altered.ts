/** A secret or sealed text with one character changed for certain, where no decoder ignores it. */
export function altered(text: string, at: number = Math.floor(text.length / 2)): string {
  return `${text.slice(0, at)}${text[at] === "A" ? "B" : "A"}${text.slice(at + 1)}`;
}
