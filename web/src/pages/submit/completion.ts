/** What may be written at a place of a job file, from its schema. */
import { choices, ITEM, kindOf, schemaAt, schemasAt, takes, type Schema } from "@/pages/submit/schema";
import { placeAt, type Place } from "@/pages/submit/where";

export interface Suggestion {
  label: string;
  /** What is put in its place. */
  text: string;
  detail: string;
  about: string;
  isValue: boolean;
}
export interface Suggested {
  from: number;
  /** Whether they are all there is: then they are offered unasked. Examples are only shown to who asks. */
  isWhole: boolean;
  suggestions: Suggestion[];
}

export function suggest(schema: Schema, text: string, position: number): Suggested | null {
  const place = placeAt(text, position);
  if (place === null) return null;
  const named = place.isValue ? [] : names(schema, place);
  const isScalar = place.isValue || (named.length === 0 && place.path[place.path.length - 1] === ITEM);
  const suggestions = isScalar ? values(schema, place) : named;
  const isWhole = !isScalar || suggestions.every(({ detail }) => detail === "");
  return suggestions.length === 0 ? null : { from: place.from, isWhole, suggestions };
}

function names(schema: Schema, place: Place): Suggestion[] {
  const found = schemasAt(schema, place.path).flatMap((one) => Object.entries(one.properties ?? {}));
  return found
    .filter(([name]) => !place.taken.includes(name))
    .map(([name, one]) => ({
      label: name,
      text: opened(name, one, place),
      detail: kindOf(one),
      about: about(one),
      isValue: false,
    }));
}

/** Fields of its own go on the next line, deeper. */
function opened(name: string, schema: Schema, place: Place): string {
  const isDeep = takes(schema, "object") && !takes(schema, "string") && !place.isInBrackets;
  return isDeep ? `${name}:\n${" ".repeat(place.indent + 2)}` : `${name}: `;
}

function values(schema: Schema, place: Place): Suggestion[] {
  const found = schemasAt(schema, place.path);
  const named = found.flatMap((one) => choices(one).map((value) => suggestion(String(value), one, "")));
  if (named.length > 0) return unique(named);
  const isItem = place.path[place.path.length - 1] === ITEM;
  const whole = schemaAt(schema, isItem ? place.path.slice(0, -1) : place.path);
  const written = (whole ? [whole] : []).flatMap((one) => [
    ...(one.default === undefined ? [] : [suggestion(scalar(one.default), one, "default")]),
    ...(one.examples ?? []).flatMap((example) => samples(example).map((text) => suggestion(text, one, "example"))),
  ]);
  return unique(written.filter(({ label }) => label !== ""));
}

function samples(example: unknown): string[] {
  return Array.isArray(example) ? example.map(scalar) : [scalar(example)];
}

function scalar(value: unknown): string {
  return value === null || typeof value === "object" ? "" : String(value);
}

function suggestion(label: string, schema: Schema, detail: string): Suggestion {
  return { label, text: label, detail, about: schema.description ?? "", isValue: true };
}

function unique(suggestions: Suggestion[]): Suggestion[] {
  return [...new Map(suggestions.map((one) => [one.label, one])).values()];
}

/** A field in words: what it is for, what it is if not given, what it may look like. */
export function about(schema: Schema): string {
  const said = [schema.description ?? ""];
  if (schema.default !== undefined) said.push(`Default: ${JSON.stringify(schema.default)}`);
  const example = schema.examples?.[0];
  if (example !== undefined) said.push(`Example: ${typeof example === "string" ? example : JSON.stringify(example)}`);
  return said.filter(Boolean).join("\n");
}
