/** Who is signed in, and what they may do: the page hides what the server would refuse, and the server refuses anyway. */
import { useQuery } from "@tanstack/react-query";
import { api, told, type Shape } from "@/api/client";

export type Me = Shape<"Me">;

export function useMe() {
  return useQuery({ queryKey: ["me"], queryFn: () => told(api.GET("/v1/me")), staleTime: 60_000 });
}

/** Whether they may change things at all. */
export function mayChange(me: Me | undefined): boolean {
  return me !== undefined && me.role !== "viewer" && (me.grants.length === 0 || me.grants.includes("jobs"));
}

export function isAdmin(me: Me | undefined): boolean {
  return me?.role === "admin";
}

export function managesSomething(me: Me | undefined): boolean {
  return isAdmin(me) || Object.values(me?.teams ?? {}).includes("manager");
}
