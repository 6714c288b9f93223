/** The word for how a job stands: its status, or what is wished of it and not yet so. */
import { TERMINAL } from "@/pages/job/queries";

export function stateOf({ status, desired }: { status: string; desired: string }): string {
  if (TERMINAL.has(status)) return status;
  if (desired === "cancel") return "cancelling";
  if (desired === "hold") return status === "pending" ? "held" : "holding";
  return status;
}
