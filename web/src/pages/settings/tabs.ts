/** The parts of settings, and who has each. */
import { isAdmin, managesSomething, type Me } from "@/session/me";

export interface Tab {
  name: string;
  title: string;
  isFor: (me: Me | undefined) => boolean;
}

const anybody = () => true;

export const TABS: Tab[] = [
  { name: "health", title: "Health", isFor: anybody },
  { name: "tokens", title: "Tokens", isFor: anybody },
  { name: "secrets", title: "Secrets", isFor: anybody },
  { name: "teams", title: "Teams and projects", isFor: anybody },
  { name: "people", title: "People", isFor: managesSomething },
  { name: "audit", title: "Audit", isFor: managesSomething },
  { name: "retention", title: "Retention", isFor: isAdmin },
  { name: "about", title: "About", isFor: anybody },
];

export function tabsFor(me: Me | undefined): Tab[] {
  return TABS.filter((tab) => tab.isFor(me));
}

/** Whether they manage this team; a viewer of the server manages nothing, whatever a team says. */
export function manages(me: Me | undefined, team: string): boolean {
  return isAdmin(me) || (me !== undefined && me.role !== "viewer" && me.teams[team] === "manager");
}
