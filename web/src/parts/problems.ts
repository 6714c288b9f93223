/** What the server found wrong with a form, and at which of its fields. */
import { ApiError } from "@/api/errors";

interface Problem {
  field: string;
  message: string;
}

function problemsOf(error: unknown): Problem[] {
  if (!(error instanceof ApiError)) return [];
  const several = error.details["problems"];
  if (Array.isArray(several)) return several as Problem[];
  return error.field === null ? [] : [{ field: error.field, message: error.message }];
}

/** A problem with a part of a field is the field's: `scope.name` belongs to `scope` unless it has a place of its own. */
function isAt(problem: Problem, field: string): boolean {
  const where = problem.field.replace(/^body\./, "");
  return where === field || where.startsWith(`${field}.`);
}

/** What to write at a field. */
export function problemAt(error: unknown, field: string): string | undefined {
  return problemsOf(error).find((one) => isAt(one, field))?.message;
}

/** The error, unless one of these fields shows it. */
export function problemBeside(error: unknown, fields: string[]): unknown {
  return fields.some((field) => problemAt(error, field) !== undefined) ? null : error;
}
