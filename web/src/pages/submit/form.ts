/** The common fields of a job file as a form, kept in step with its text both ways. The text is the truth: a field is read
 * from it and written into it, and everything else in it stays as it is, comments too. */
import { isMap, isScalar, isSeq, parseDocument, type Document } from "yaml";

export type Value = string | number | boolean | string[] | undefined;
export type Path = readonly string[];

export interface Group {
  title: string;
  fields: Path[];
}

const path = (dotted: string): Path => ["job", ...dotted.split(".")];

export const GROUPS: Group[] = [
  {
    title: "What runs",
    fields: ["name", "type", "framework", "command", "entrypoint", "args", "image", "setup"].map(path),
  },
  {
    title: "What it needs",
    fields: [
      "resources.gpus",
      "resources.gpu_type",
      "resources.gpu_memory",
      "resources.nodes",
      "resources.cpus",
      "resources.cpu_memory",
      "resources.storage",
      "resources.estimated_hours",
    ].map(path),
  },
  {
    title: "What it may cost",
    fields: [
      "constraints.budget",
      "constraints.max_price_per_hour",
      "constraints.deadline",
      "constraints.allow_spot",
      "constraints.strategy",
      "constraints.providers",
    ].map(path),
  },
  {
    title: "How it goes on, and who pays",
    fields: ["checkpoint.interval", "timeout", "retry.limit", "priority", "team", "project"].map(path),
  },
];

/** null where the text is no YAML with a mapping under `job`: then it must be mended as text first. */
export function parsed(text: string): Document | null {
  const document = parseDocument(text);
  if (document.errors.length > 0) return null;
  const top: unknown = document.contents;
  if (top !== null && !isMap(top)) return null;
  const job: unknown = document.get("job", true);
  const isOpen = job === undefined || isMap(job) || (isScalar(job) && job.value === null);
  return isOpen ? document : null;
}

export function fieldOf(document: Document, field: Path): Value {
  const node: unknown = document.getIn(field, true);
  if (isSeq(node)) return node.items.map((item) => (isScalar(item) ? String(item.value) : String(item)));
  if (!isScalar(node) || node.value === null) return undefined;
  const value = node.value;
  return typeof value === "number" || typeof value === "boolean" ? value : String(value);
}

/** The text with that field; an empty value takes it out, and a mapping that has nothing left with it. */
export function withField(text: string, field: Path, value: Value): string {
  const document = parsed(text);
  if (document === null) return text;
  if (value === undefined || value === "" || (Array.isArray(value) && value.length === 0)) remove(document, field);
  else put(document, field, value);
  return written(document, text);
}

/** In the manner of the text that it was read from: brackets with room inside, or without. */
export function written(document: Document, text: string): string {
  return document.toString({ lineWidth: 0, flowCollectionPadding: /[{[] /.test(text) });
}

/** Sets it, opening mappings on the way there. */
export function put(document: Document, field: Path, value: unknown): void {
  for (let depth = 0; depth < field.length; depth += 1) {
    const way = field.slice(0, depth);
    const there: unknown = depth === 0 ? document.contents : document.getIn(way, true);
    if (isMap(there)) continue;
    if (depth === 0) document.contents = document.createNode({});
    else document.setIn(way, document.createNode({}));
  }
  document.setIn(field, Array.isArray(value) ? document.createNode(value, { flow: true }) : value);
}

function remove(document: Document, field: Path): void {
  document.deleteIn(field);
  for (let depth = field.length - 1; depth > 1; depth -= 1) {
    const there: unknown = document.getIn(field.slice(0, depth), true);
    if (isMap(there) && there.items.length === 0) document.deleteIn(field.slice(0, depth));
  }
}

/** As a number where it reads back as the same letters: "8" is 8, "1.0" stays as it was typed. */
export function typed(text: string): string | number {
  return text !== "" && String(Number(text)) === text ? Number(text) : text;
}
