/** Lines of the audit log in words. */
import type { AuditFilter } from "@/pages/settings/queries";

export function detailWords(details: Record<string, unknown>): string {
  return Object.entries(details)
    .map(
      ([name, value]) =>
        `${name}=${typeof value === "object" && value !== null ? JSON.stringify(value) : String(value)}`,
    )
    .join(" ");
}

export function auditCommand({ user, team, subject }: AuditFilter): string {
  const options = Object.entries({ user, team, subject }).flatMap(([name, value]) =>
    value ? [` --${name} ${value}`] : [],
  );
  return `crucible audit${options.join("")}`;
}
