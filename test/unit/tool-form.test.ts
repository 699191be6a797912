/** Fields from an input schema, and arguments from a form: any schema and any text give a form or a sentence, never a throw. */
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { fieldsOf, readArguments } from "../../src/console/tool-form.ts";

const SCHEMA = {
  type: "object",
  properties: {
    room: { type: "string", enum: ["kitchen", "study"] },
    on: { type: "boolean" },
    level: { type: "integer", default: 60 },
    warmth: { type: "number" },
    colour: { type: "object" },
    note: { type: "string", title: "A\u202e note", description: "for\u0007 the log" },
  },
  required: ["room", "on"],
};

function typed(fields: Record<string, string>): URLSearchParams {
  return new URLSearchParams(Object.entries(fields).map(([name, value]): [string, string] => [`arg:${name}`, value]));
}

describe("a schema", () => {
  test("gives a field for each property, with its kind, default and cleaned words", () => {
    const fields = fieldsOf(SCHEMA) ?? [];
    expect(fields.map(({ name, kind, required, value }) => [name, kind, required, value])).toEqual([
      ["room", "choice", true, ""],
      ["on", "boolean", true, ""],
      ["level", "integer", false, "60"],
      ["warmth", "number", false, ""],
      ["colour", "json", false, ""],
      ["note", "text", false, ""],
    ]);
    expect(fields[5]).toMatchObject({ title: "A note", description: "for the log" });
  });

  test.each([[null], [[]], ["x"], [{ properties: [] }], [{ oneOf: [] }], [{ $ref: "#" }]])("%j is typed as one JSON object", (schema) => {
    expect(fieldsOf(schema)).toBeNull();
  });
});

describe("a form", () => {
  const read = (fields: Record<string, string>) => readArguments(fieldsOf(SCHEMA), typed(fields));

  test("gives values of the schema's types, and leaves out what is empty", () => {
    const given = { room: "study", on: "false", level: "0", warmth: "1.5", colour: '{"hue":1}', note: "" };
    expect(read(given)).toEqual({ ok: true, args: { room: "study", on: false, level: 0, warmth: 1.5, colour: { hue: 1 } } });
  });

  test.each([
    [{ room: "study" }, "“on” is required."],
    [{ room: "attic", on: "true" }, "“room” must be one of the choices."],
    [{ room: "study", on: "yes" }, "“on” must be true or false."],
    [{ room: "study", on: "true", level: "1.5" }, "“level” must be a whole number."],
    [{ room: "study", on: "true", level: "9007199254740993" }, "“level” must be a whole number."],
    [{ room: "study", on: "true", warmth: "warm" }, "“warmth” must be a number."],
    [{ room: "study", on: "true", colour: "{" }, "“colour” must be JSON."],
  ])("%j is answered by a sentence", (given, problem) => {
    expect(read(given)).toEqual({ ok: false, problem });
  });

  test("takes all arguments as one JSON object", () => {
    const whole = (text: string) => readArguments(null, new URLSearchParams({ arguments: text }));
    expect(whole('{"a":1}')).toEqual({ ok: true, args: { a: 1 } });
    expect(whole("")).toEqual({ ok: true, args: {} });
    for (const text of ["[]", "1", "{"]) expect(whole(text)).toMatchObject({ ok: false });
  });

  test("a property that is called like something of an object's own is a property", () => {
    const schema = JSON.parse('{"properties":{"__proto__":{"type":"string"},"constructor":{"type":"integer"}}}') as unknown;
    const answer = readArguments(fieldsOf(schema), typed({ ["__proto__"]: "a", constructor: "1" }));
    expect(answer.ok && JSON.stringify(answer.args)).toBe('{"__proto__":"a","constructor":1}');
  });

  test("any schema and any text give an answer", () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.dictionary(fc.string(), fc.string()), (schema, given) => {
        const answer = readArguments(fieldsOf(schema), typed(given));
        expect(typeof answer.ok).toBe("boolean");
      }),
    );
  });
});
