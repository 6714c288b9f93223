/** What the JSON Schema of a job file says of a place in it. */

export interface Schema {
  description?: string;
  type?: string | string[];
  enum?: (string | number | boolean)[];
  default?: unknown;
  examples?: unknown[];
  minimum?: number;
  maximum?: number;
  properties?: Record<string, Schema>;
  additionalProperties?: boolean | Schema;
  items?: Schema;
  anyOf?: Schema[];
}

/** Any item of a list, within a path. */
export const ITEM: unique symbol = Symbol("item");
export type Step = string | typeof ITEM;

/** Everything that may stand there: one schema, or one for each of several ways to write it. */
export function schemasAt(schema: Schema, path: Step[]): Schema[] {
  return path.reduce((found, step) => found.flatMap((one) => below(one, step)), ways(schema));
}

export function schemaAt(schema: Schema, path: Step[]): Schema | undefined {
  const parents = schemasAt(schema, path.slice(0, -1));
  const last = path[path.length - 1];
  if (last === undefined) return schema;
  return parents.flatMap((one) => direct(one, last))[0];
}

function below(schema: Schema, step: Step): Schema[] {
  return direct(schema, step).flatMap(ways);
}

function direct(schema: Schema, step: Step): Schema[] {
  if (step === ITEM) return schema.items ? [schema.items] : [];
  const named = schema.properties?.[step];
  if (named) return [named];
  return typeof schema.additionalProperties === "object" ? [schema.additionalProperties] : [];
}

/** An `anyOf` of shapes is several ways; one that only says which fields go together has no shape of its own. */
function ways(schema: Schema): Schema[] {
  const shaped = (schema.anyOf ?? []).filter((one) => one.type !== undefined || one.enum !== undefined);
  return shaped.length > 0 ? shaped : [schema];
}

export function takes(schema: Schema, type: string): boolean {
  return ways(schema).some((one) => one.type === type || (Array.isArray(one.type) && one.type.includes(type)));
}

export function choices(schema: Schema): (string | number | boolean)[] {
  const named = ways(schema).flatMap((one) => one.enum ?? []);
  return named.length === 0 && takes(schema, "boolean") && !takes(schema, "string") ? [true, false] : named;
}

/** What it takes, in a word. */
export function kindOf(schema: Schema): string {
  if (choices(schema).length > 0) return choices(schema).join(" | ");
  if (takes(schema, "object")) return "fields";
  if (takes(schema, "array")) return takes(schema, "string") ? "text or a list" : "a list";
  if (takes(schema, "integer")) return "whole number";
  return takes(schema, "string") ? "text" : "number";
}
