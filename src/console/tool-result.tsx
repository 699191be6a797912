/** What a tool answered: text as text, raster images as images, structured content as JSON; everything else is named, not shown. */
import { z } from "zod";
import { CONSOLE } from "../limits.ts";
import { cleanBlock, cleanText } from "../policy/clean-text.ts";

const Content = z.looseObject({ type: z.string() });
const Result = z.looseObject({
  resultType: z.string().optional(),
  content: z.array(Content).default([]),
  structuredContent: z.unknown().optional(),
  isError: z.boolean().default(false),
});
const Answer = z.looseObject({
  result: Result.optional(),
  error: z.looseObject({ code: z.number(), message: z.string(), data: z.unknown().optional() }).optional(),
});
type Content = z.infer<typeof Content>;

/** A call that is over. */
export interface Tried {
  /** The JSON-RPC response, unread. */
  answer: unknown;
  durationMs: number;
}

/** SECURITY: raster formats alone; an SVG is a document. */
const RASTER = /^image\/(?:png|jpeg|gif|webp)$/;
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

function block(text: unknown): string {
  return cleanBlock(typeof text === "string" ? text : (JSON.stringify(text, undefined, 2) ?? ""), CONSOLE.resultChars);
}

function Text({ label, text }: { label: string; text: unknown }) {
  return (
    <pre tabindex={0} role="region" aria-label={label}>
      {block(text)}
    </pre>
  );
}

function Piece({ piece }: { piece: Content }) {
  const { type } = piece;
  const mimeType = typeof piece["mimeType"] === "string" ? piece["mimeType"] : "";
  const data = typeof piece["data"] === "string" ? piece["data"] : "";
  if (type === "text") return <Text label="text result" text={piece["text"]} />;
  if (type === "image" && RASTER.test(mimeType) && BASE64.test(data) && data.length <= CONSOLE.imageChars)
    return <img class="result" src={`data:${mimeType};base64,${data}`} alt="image result" />;
  if (type === "resource_link") return <p class="note">Link to the resource {cleanText(String(piece["uri"]))}</p>;
  if (type === "resource") return <Text label="resource result" text={piece["resource"]} />;
  const size = data === "" ? "" : `, ${Math.round((data.length * 3) / 4)} bytes`;
  return (
    <p class="note">{`${cleanText(type)} content${mimeType === "" ? "" : ` of type ${cleanText(mimeType)}`}${size}: not shown here`}</p>
  );
}

/** The card with the outcome. */
export function ToolResult({ tried }: { tried: Tried }) {
  const parsed = Answer.safeParse(tried.answer);
  const { result, error } = parsed.success ? parsed.data : {};
  const after = `after ${tried.durationMs} ms`;
  if (result === undefined) return <Failure error={error} after={after} />;
  if (result.resultType === "input_required")
    return (
      <p class="warning" role="status">
        The tool asks for something that the console cannot answer. Call it from a client that can.
      </p>
    );
  return (
    <section class="card" aria-labelledby="result" data-outcome={result.isError ? "error" : "ok"}>
      <header>
        <h2 id="result">Result</h2>
        <span role="status">
          <span class={`badge ${result.isError ? "bad" : "ok"}`}>{result.isError ? "The tool reports an error" : "Succeeded"}</span>{" "}
          <span class="note">{after}</span>
        </span>
      </header>
      {result.content.map((piece) => (
        <Piece piece={piece} />
      ))}
      {result.structuredContent === undefined ? null : (
        <>
          <h3>Structured</h3>
          <Text label="structured result" text={result.structuredContent} />
        </>
      )}
      {result.content.length === 0 && result.structuredContent === undefined ? <p class="note">It answered with nothing.</p> : null}
    </section>
  );
}

function Failure({ error, after }: { error: z.infer<typeof Answer>["error"]; after: string }) {
  return (
    <section class="card" aria-labelledby="result" data-outcome="failed">
      <header>
        <h2 id="result">No result</h2>
        <span role="status">
          <span class="badge bad">{error === undefined ? "Not an answer" : `Error ${error.code}`}</span> <span class="note">{after}</span>
        </span>
      </header>
      <p>{cleanText(error?.message ?? "The device answered with something that cannot be read.")}</p>
      {error?.data === undefined ? null : <Text label="details of the error" text={error.data} />}
    </section>
  );
}
