/** Where a draft begins when an address says so: another job, a template, or a workload that was compared. */
import type { Shape } from "@/api/client";
import { specOf, workloadOf } from "@/pages/compare/workload";

export type Start =
  | { kind: "job"; id: string; origin: string }
  | { kind: "template"; name: string; origin: string }
  | { kind: "text"; text: string; origin: string };

export function startOf(search: Record<string, string | undefined>): Start | null {
  const { from, template, gpu } = search;
  if (from) return { kind: "job", id: from, origin: `job:${from}` };
  if (template) return { kind: "template", name: template, origin: `template:${template}` };
  if (!gpu) return null;
  const text = specOf(workloadOf(search));
  return { kind: "text", text, origin: `workload:${text}` };
}

/** A job that names a template, with every parameter at its default and what it is for beside it. */
export function usingTemplate({ name, parameters }: Pick<Shape<"TemplateItem">, "name" | "parameters">): string {
  const lines = parameters.map(({ name: key, default: usual, doc }) => {
    const value = usual === null ? "" : ` ${typeof usual === "string" ? JSON.stringify(usual) : String(usual)}`;
    return `    ${key}:${value}${doc ? ` # ${doc}` : ""}\n`;
  });
  return `job:\n  template: ${name}\n${lines.length > 0 ? `  with:\n${lines.join("")}` : ""}`;
}
