/** What one wants to see of the jobs; it lives in the address. */
import { useAddress } from "@/parts/address";
import { quoted } from "@/parts/quoted";

export interface Filters {
  /** States with commas between them; empty for all. */
  status: string;
  words: string;
  team: string;
  project: string;
  user: string;
}

export const STATES = [
  "running",
  "pending",
  "scheduled",
  "provisioning",
  "checkpointing",
  "completed",
  "failed",
  "cancelled",
] as const;

export function useFilters(): [Filters, (change: Partial<Filters>) => void] {
  const [params, setParams, goTo] = useAddress();
  const filters: Filters = {
    status: (params["status"] ?? "")
      .split(",")
      .filter((one) => (STATES as readonly string[]).includes(one))
      .join(","),
    words: params["find"] ?? "",
    team: params["team"] ?? "",
    project: params["project"] ?? "",
    user: params["user"] ?? "",
  };
  const change = ({ words, ...rest }: Partial<Filters>) => {
    if (words !== undefined) setParams({ find: words });
    else goTo(rest);
  };
  return [filters, change];
}

/** One more state, or one less. */
export function toggled(status: string, state: string): string {
  const chosen = status === "" ? [] : status.split(",");
  return (chosen.includes(state) ? chosen.filter((one) => one !== state) : [...chosen, state]).join(",");
}

/** The same list on the command line, which looks for no words. */
export function commandOf({ status, team, project, user }: Filters): string {
  const states = status === "" ? [] : status.split(",").map((one) => `--status ${one}`);
  const of = Object.entries({ team, project, user }).flatMap(([name, value]) =>
    value === "" ? [] : [`--${name} ${quoted(value)}`],
  );
  return ["crucible ps -a", ...states, ...of].join(" ");
}
