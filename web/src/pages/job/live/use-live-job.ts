import { useEffect, useMemo, useSyncExternalStore } from "react";
import { LiveJob, type Live } from "@/pages/job/live/live-job";
import { useSession } from "@/session/token";

/** One stream for the whole page; another task or another token is another one. */
export function useLiveJob(jobId: string, task: number): { job: LiveJob; live: Live } {
  const { token } = useSession();
  const job = useMemo(() => new LiveJob(jobId, task, token ?? ""), [jobId, task, token]);
  useEffect(() => job.open(), [job]);
  return { job, live: useSyncExternalStore(job.subscribe, job.snapshot) };
}
