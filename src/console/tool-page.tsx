/** Trying a tool: a form made from its input schema, and below it what the tool answered. */
import type { Context } from "hono";
import type { GrantRecord } from "../db/grants.ts";
import type { TokenHolder } from "../db/owner-tokens.ts";
import type { AppEnv } from "../env.ts";
import { cleanText } from "../policy/clean-text.ts";
import { page } from "./page.tsx";
import { Heading, Problem } from "./parts.tsx";
import { devicePath } from "./paths.ts";
import { FIELD_PREFIX, type ToolField, WHOLE_FIELD } from "./tool-form.ts";
import { ToolResult, type Tried } from "./tool-result.tsx";

/** What the page shows. */
export interface ToolView {
  person: TokenHolder;
  device: string;
  tool: string;
  description: string | undefined;
  destructive: boolean;
  /** Null when all arguments are typed as one JSON object. */
  fields: readonly ToolField[] | null;
  /** What was typed for that. */
  whole: string;
  /** The person's own grants that it can be called with. */
  grants: readonly GrantRecord[];
  chosen: string;
  problem: string | undefined;
  tried: Tried | undefined;
}

function Input({ field, id, described }: { field: ToolField; id: string; described: Record<string, string> }) {
  const { kind, value, required, options } = field;
  const shared = { id, name: `${FIELD_PREFIX}${field.name}`, ...described };
  switch (kind) {
    case "boolean":
    case "choice":
      return (
        <select {...shared}>
          {required && value !== "" ? null : <option value="">(not given)</option>}
          {(kind === "boolean" ? ["true", "false"] : options).map((option) => (
            <option value={option} selected={option === value}>
              {cleanText(option)}
            </option>
          ))}
        </select>
      );
    case "number":
    case "integer":
      return <input {...shared} type="number" step={kind === "integer" ? "1" : "any"} value={value} required={required} />;
    case "json":
      return (
        <textarea {...shared} spellcheck={false} required={required}>
          {value}
        </textarea>
      );
    case "text":
      break;
  }
  return <input {...shared} value={value} autocomplete="off" />;
}

function Field({ field, index }: { field: ToolField; index: number }) {
  const id = `arg-${index}`;
  const described = field.description === undefined ? {} : { "aria-describedby": `${id}-hint` };
  return (
    <>
      <label for={id}>
        {field.title} {field.required ? null : <small class="muted">optional</small>}
        {field.kind === "json" ? <small class="muted"> as JSON</small> : null}
      </label>
      <Input field={field} id={id} described={described} />
      {field.description === undefined ? null : (
        <p class="note" id={`${id}-hint`}>
          {field.description}
        </p>
      )}
    </>
  );
}

function Fields({ fields, whole }: Pick<ToolView, "fields" | "whole">) {
  if (fields === null)
    return (
      <>
        <label for="arguments">Arguments, as JSON</label>
        <textarea id="arguments" name={WHOLE_FIELD} spellcheck={false}>
          {whole}
        </textarea>
      </>
    );
  if (fields.length === 0) return <p class="note">It takes no arguments.</p>;
  return (
    <>
      {fields.map((field, index) => (
        <Field field={field} index={index} />
      ))}
    </>
  );
}

function CallAs({ person, grants, chosen }: Pick<ToolView, "person" | "grants" | "chosen">) {
  if (person.role === "owner" && grants.length === 0) return null;
  return (
    <>
      <label for="grant">With the rights of</label>
      <select id="grant" name="grant">
        {person.role === "owner" ? <option value="">the owner: everything</option> : null}
        {grants.map(({ grant }) => (
          <option value={grant.id} selected={grant.id === chosen}>
            {cleanText(grant.label)}
          </option>
        ))}
      </select>
    </>
  );
}

/** Shows the form and, once it was tried, the result. */
export function toolPage(c: Context<AppEnv>, view: ToolView): Promise<Response> {
  const { person, device, tool, description, destructive, grants, problem, tried } = view;
  const title = `Try ${cleanText(tool)}`;
  const canCall = person.role === "owner" || grants.length > 0;
  return page(c, {
    title,
    status: problem === undefined ? 200 : 400,
    console: { person, here: "devices" },
    heading: <Heading title={title} back={{ to: devicePath(device), text: device }} />,
    body: (
      <>
        {description === undefined ? null : <p>{description}</p>}
        {destructive ? <p class="warning">The device says that this tool can destroy something.</p> : null}
        <Problem text={problem} />
        <div class="pair">
          <form method="post" action={devicePath(device, "try")} class="card" aria-label="Arguments">
            <input type="hidden" name="tool" value={tool} />
            <Fields {...view} />
            <CallAs {...view} />
            {canCall ? <button type="submit">Call it</button> : <p class="warning">You need a token on this device to call its tools.</p>}
            <p class="note">The call runs on the device for real, and is in the audit like any other.</p>
          </form>
          {tried === undefined ? null : <ToolResult tried={tried} />}
        </div>
      </>
    ),
  });
}
