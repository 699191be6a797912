/** Reading a request body: bounded whether its length was announced or not, and strict UTF-8. */
import { EDGE } from "../limits.ts";

// Stateless between whole texts, so one serves all requests.
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false });

export type ReadText = { ok: true; text: string } | { ok: false; why: "too_large" | "not_utf8" };

/** The body's text. A byte order mark at its start is ignored (RFC 8259 §8.1). */
export async function readText(request: Request, cap: number = EDGE.maxRequestBytes): Promise<ReadText> {
  const announced = request.headers.get("content-length");
  if (announced !== null && Number(announced) > cap) return { ok: false, why: "too_large" };
  // An announced length bounds the body already, so it can be taken in one go.
  const bytes = announced === null ? await readBounded(request, cap) : new Uint8Array(await request.arrayBuffer());
  if (bytes === null || bytes.length > cap) return { ok: false, why: "too_large" };
  try {
    return { ok: true, text: decoder.decode(bytes) };
  } catch {
    return { ok: false, why: "not_utf8" };
  }
}

async function readBounded(request: Request, cap: number): Promise<Uint8Array | null> {
  if (request.body === null) return new Uint8Array();
  const reader = (request.body as ReadableStream<Uint8Array>).getReader();
  const parts: Uint8Array[] = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.length;
    if (size > cap) {
      reader.releaseLock();
      return null;
    }
    parts.push(value);
  }
  const whole = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
