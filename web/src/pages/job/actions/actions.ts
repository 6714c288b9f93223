/** What can be wished of a job, when, and how the same is said on the command line. */
import { api, told } from "@/api/client";
import { TERMINAL } from "@/pages/job/queries";

export type ActionName = "cancel" | "hold" | "release" | "retry" | "resume" | "keep" | "unkeep";

export interface Action {
  name: ActionName;
  label: string;
  /** What comes of it. */
  about: string;
  isDangerous?: boolean;
  /** Several at once make sense. */
  isForMany?: boolean;
  isPossible: (job: { status: string; desired: string; isKept?: boolean }) => boolean;
  /** The id of a new job, if one is made. */
  run: (jobId: string, once: string) => Promise<string | null>;
}

const at = (jobId: string) => ({ path: { job_id: jobId } });
const made = async (asked: Promise<{ id: string }>) => (await asked).id;
const done = async (asked: Promise<unknown>) => {
  await asked;
  return null;
};

export const ACTIONS: Action[] = [
  {
    name: "cancel",
    label: "Cancel",
    about: "Stops it for good and gives its machines back. Its checkpoints stay.",
    isDangerous: true,
    isForMany: true,
    isPossible: ({ status, desired }) => !TERMINAL.has(status) && desired !== "cancel",
    run: (id) => done(told(api.POST("/v1/jobs/{job_id}/cancel", { params: at(id) }))),
  },
  {
    name: "hold",
    label: "Hold",
    about: "Stops it with a checkpoint and gives its machines back. It waits until it is released.",
    isForMany: true,
    isPossible: ({ status, desired }) => !TERMINAL.has(status) && desired === "run",
    run: (id) => done(told(api.POST("/v1/jobs/{job_id}/hold", { params: at(id), body: {} }))),
  },
  {
    name: "release",
    label: "Release",
    about: "Lets it go on from its newest checkpoint.",
    isForMany: true,
    isPossible: ({ status, desired }) => !TERMINAL.has(status) && desired === "hold",
    run: (id) => done(told(api.POST("/v1/jobs/{job_id}/release", { params: at(id) }))),
  },
  {
    name: "retry",
    label: "Retry",
    about: "Makes a new job that runs the same from the beginning.",
    isPossible: ({ status }) => TERMINAL.has(status),
    run: (id, once) => made(told(api.POST("/v1/jobs/{job_id}/retry", { params: { ...at(id), header: keyed(once) } }))),
  },
  {
    name: "resume",
    label: "Resume",
    about: "Makes a new job that goes on from the newest valid checkpoint.",
    isPossible: ({ status }) => TERMINAL.has(status),
    run: (id, once) => made(told(api.POST("/v1/jobs/{job_id}/resume", { params: { ...at(id), header: keyed(once) } }))),
  },
  {
    name: "keep",
    label: "Keep",
    about: "Its logs, history, plan and outputs stay, however old they get.",
    isPossible: ({ isKept }) => isKept === false,
    run: (id) => done(told(api.PUT("/v1/jobs/{job_id}/keep", { params: at(id) }))),
  },
  {
    name: "unkeep",
    label: "Do not keep",
    about: "It goes as others do when it is old.",
    isPossible: ({ isKept }) => isKept === true,
    run: (id) => done(told(api.DELETE("/v1/jobs/{job_id}/keep", { params: at(id) }))),
  },
];

/** Asked twice, it is the same new job. */
function keyed(once: string) {
  return { "Idempotency-Key": once };
}

export function commandOf(action: ActionName, jobIds: string[]): string {
  return `crucible ${action} ${jobIds.join(" ")}`;
}
