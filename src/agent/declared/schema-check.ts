/** JSON Schema checks of declared tools, by the validator that the MCP client brings along (ajv). */
import { AjvJsonSchemaValidator } from "@modelcontextprotocol/client/validators/ajv";
import { cleanText } from "../clean-text.ts";

/** Says what does not fit, for a person; undefined when all does. */
export type SchemaCheck = (value: unknown) => string | undefined;

/** A check by a schema. Throws an Error when the schema is none. */
export function schemaCheck(schema: Readonly<Record<string, unknown>>): SchemaCheck {
  // A validator of its own: two tools may name their schemas alike.
  const validate = new AjvJsonSchemaValidator().getValidator({ ...schema });
  return (value) => {
    const result = validate(value);
    return result.valid ? undefined : cleanText(result.errorMessage.replaceAll(/\bdata(?=[/ ])/g, "value"));
  };
}

/** Values of absent arguments that their schema has a default for. */
export function withDefaults(schema: Readonly<Record<string, unknown>>, args: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const all = { ...args };
  for (const [name, property] of Object.entries(propertiesOf(schema)))
    if (!Object.hasOwn(all, name) && Object.hasOwn(property, "default")) all[name] = property["default"];
  return all;
}

/** The properties of a schema, each an object. */
export function propertiesOf(schema: Readonly<Record<string, unknown>>): Record<string, Record<string, unknown>> {
  const { properties } = schema;
  if (typeof properties !== "object" || properties === null) return {};
  return Object.fromEntries(
    Object.entries(properties).map(([name, property]) => [
      name,
      typeof property === "object" && property !== null ? (property as Record<string, unknown>) : {},
    ]),
  );
}
