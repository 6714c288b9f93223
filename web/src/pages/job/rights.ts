/** Whose jobs somebody may change: their own and those of teams that they manage. The server decides; the page only
 * shows in advance what it would refuse. */
import { isAdmin, mayChange, type Me } from "@/session/me";

interface Owned {
  user_id: string;
  team?: string | null;
}

export function mayChangeJob(me: Me | undefined, job: Owned): boolean {
  if (me === undefined || !mayChange(me)) return false;
  return isAdmin(me) || job.user_id === me.user_id || (job.team != null && me.teams[job.team] === "manager");
}
