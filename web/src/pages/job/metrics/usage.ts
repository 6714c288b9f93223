/** How machines are used, in a few charts: what belongs together is drawn together. */
import type { Shape } from "@/api/client";

export interface UsageGroup {
  title: string;
  unit: "percent" | "bytes" | "rate" | "plain";
  series: Shape<"Series">[];
}

const GROUPS: { title: string; unit: UsageGroup["unit"]; has: RegExp }[] = [
  { title: "GPU", unit: "percent", has: /^gpu\d*_percent$/ },
  { title: "GPU memory", unit: "bytes", has: /^gpu\d*_memory_(?!total)\w+$/ },
  { title: "CPU", unit: "percent", has: /^cpu_percent$/ },
  { title: "Memory", unit: "bytes", has: /^memory_(used|total)_bytes$/ },
  { title: "Network", unit: "rate", has: /^network_\w+_bytes_per_s$/ },
  { title: "Disk", unit: "bytes", has: /^disk_(used|total)_bytes$/ },
];

export function usageGroups(series: Shape<"Series">[]): UsageGroup[] {
  return GROUPS.map(({ title, unit, has }) => ({
    title,
    unit,
    series: series.filter((one) => has.test(one.name)),
  })).filter((group) => group.series.length > 0);
}

const MIB = 1024 * 1024;

export function nameOf(name: string): string {
  return name.replace(/_(percent|bytes_per_s|bytes|mib)$/, "").replaceAll("_", " ");
}

/** In the unit of its group. */
export function scaleOf(name: string): number {
  return name.endsWith("_mib") ? MIB : 1;
}
