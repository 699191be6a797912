/** Reads an answer of the relay as it comes: messages one by one, with the comments between them counted. */

export interface Arrived {
  message: Record<string, unknown>;
  /** The event as it stood on the wire, without its last empty line. */
  raw: string;
}

/** The messages of a response, in order, as they arrive; one for a JSON body, none for an empty one. */
export async function* messagesOf(response: Response, onComment: () => void = () => undefined): AsyncGenerator<Arrived, void, void> {
  if (response.headers.get("content-type") !== "text/event-stream") {
    const text = await response.text();
    if (text !== "") yield { message: JSON.parse(text) as Record<string, unknown>, raw: text };
    return;
  }
  let rest = "";
  if (response.body === null) return;
  for await (const part of response.body.pipeThrough(new TextDecoderStream())) {
    const blocks = (rest + part).split("\n\n");
    rest = blocks.pop() ?? "";
    for (const raw of blocks) {
      if (raw.startsWith(":")) onComment();
      else yield { message: JSON.parse(raw.replace(/^data: /, "")) as Record<string, unknown>, raw };
    }
  }
}
