/** The pages that can be gone to, in their order: the menu, the palette and the `g` shortcuts are made of it. */
import type { ComponentType } from "react";
import * as icons from "@/parts/icons";
import type { Me } from "@/session/me";

export interface Destination {
  to: string;
  title: string;
  about: string;
  key: string;
  icon: ComponentType<{ size?: number }>;
  isFor?: (me: Me | undefined) => boolean;
}

export const DESTINATIONS: Destination[] = [
  { to: "/", title: "Overview", about: "what runs, what it costs", key: "o", icon: icons.OverviewIcon },
  { to: "/jobs", title: "Jobs", about: "every job, live", key: "j", icon: icons.JobsIcon },
  { to: "/submit", title: "Submit", about: "write a job, see its plan", key: "s", icon: icons.SubmitIcon },
  { to: "/compare", title: "Compare", about: "providers side by side", key: "c", icon: icons.CompareIcon },
  { to: "/costs", title: "Costs", about: "spend, savings, forecast", key: "m", icon: icons.CostsIcon },
  { to: "/sweeps", title: "Sweeps", about: "searches and workflows", key: "w", icon: icons.SweepsIcon },
  { to: "/nodes", title: "Nodes", about: "machines and their GPUs", key: "n", icon: icons.NodesIcon },
  { to: "/prices", title: "Prices", about: "what is on sale, and how it went", key: "p", icon: icons.PricesIcon },
  { to: "/budgets", title: "Budgets", about: "what may be spent", key: "b", icon: icons.BudgetsIcon },
  { to: "/alerts", title: "Alerts", about: "who is told of what", key: "a", icon: icons.AlertsIcon },
  { to: "/lab", title: "Lab", about: "a cloud on this computer", key: "l", icon: icons.LabIcon },
  { to: "/settings", title: "Settings", about: "tokens, people, providers", key: "t", icon: icons.SettingsIcon },
];

export function destinationsFor(me: Me | undefined): Destination[] {
  return DESTINATIONS.filter((one) => one.isFor === undefined || one.isFor(me));
}
