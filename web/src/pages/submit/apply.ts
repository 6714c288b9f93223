/** Puts what was recommended for the code into the job file; what the file says beside that stays. */
import { isMap, isScalar, parseDocument, type Node } from "yaml";
import type { Shape } from "@/api/client";
import { fieldOf, parsed, put, withField, written } from "@/pages/submit/form";
import type { CodeFile } from "@/pages/submit/package";

// What the job is and what it runs is its writer's to say.
const KEPT = ["name", "entrypoint", "command", "code", "template"];
const STARTS = ["entrypoint", "command", "model", "steps", "template"];

/** The text with the fields of `suggested`, each with the comment that says where it is from. */
export function withSuggested(text: string, suggested: string): string {
  const document = parsed(text);
  const source = parseDocument(suggested);
  const job: unknown = source.get("job", true);
  if (document === null || !isMap(job)) return text;
  const hasStart = STARTS.some((name) => document.hasIn(["job", name]));
  for (const [path, node] of leaves(job as Node)) {
    const isTheirs = KEPT.includes(path[0] ?? "") && (hasStart || document.hasIn(["job", ...path]));
    if (!isTheirs) put(document, ["job", ...path], node);
  }
  return written(document, text);
}

function leaves(node: Node, path: string[] = []): [string[], Node][] {
  if (!isMap(node)) return [[path, node]];
  return node.items.flatMap(({ key, value }) => {
    const name = isScalar(key) ? String(key.value) : String(key);
    return leaves(value as Node, [...path, name]);
  });
}

type Offer = Pick<Shape<"crucible__wire__recommendations__OfferItem">, "provider" | "market">;

/** The job on machines of that seller, spot where that is what was recommended. */
export function withBackend(text: string, { provider, market }: Offer): string {
  const placed = withField(text, ["job", "constraints", "providers"], [provider]);
  return withField(placed, ["job", "constraints", "allow_spot"], market === "spot" ? true : undefined);
}

/** What the job file says already is known; the rest is left to be found out from the code. */
export function preferencesOf(text: string) {
  const document = parsed(text);
  const number = (...field: string[]) => {
    const value = document === null ? undefined : fieldOf(document, ["job", ...field]);
    return typeof value === "number" && value > 0 ? value : undefined;
  };
  return {
    duration_hours: number("resources", "estimated_hours"),
    max_cost_usd: number("constraints", "budget"),
    data_privacy: false,
  };
}

export function entrypointOf(text: string): string | undefined {
  const document = parsed(text);
  const value = document === null ? undefined : fieldOf(document, ["job", "entrypoint"]);
  return typeof value === "string" ? value : undefined;
}

/** Said where a job would start a file that is not shipped with it. */
export function missingStart(text: string, files: CodeFile[]): string | null {
  const start = entrypointOf(text);
  if (start === undefined || start.includes("://") || files.some(({ name }) => name === start)) return null;
  return `the entrypoint ${start} is not among these files`;
}
