import { Badge, Button, Progress, Tooltip } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { asApiError } from "@/api/errors";
import { verify, type Verified } from "@/pages/job/history/verify";

/** Reads every byte: a button, then how far it is, then what came of it. */
export function Verify({ jobId, task, step }: { jobId: string; task: number; step: number }) {
  const [said, setSaid] = useState<Verified | null>(null);
  const work = useMutation({ mutationFn: () => verify(jobId, task, step, setSaid) });
  if (work.isPending)
    return (
      <Progress
        w={90}
        value={said?.size_bytes ? (said.checked_bytes / said.size_bytes) * 100 : 0}
        aria-label={`checking step ${step}`}
      />
    );
  const problems = work.error ? [asApiError(work.error).message] : (work.data?.problems ?? []);
  return (
    <>
      {work.data?.is_valid && (
        <Badge color="green" variant="light" tt="none" role="status">
          every byte is right
        </Badge>
      )}
      {problems.length > 0 && (
        <Tooltip label={problems.join("; ")} multiline maw={420}>
          <Badge color="red" variant="light" tt="none" role="status" tabIndex={0}>
            {work.error ? "could not be checked" : "damaged"}
          </Badge>
        </Tooltip>
      )}
      <Button size="compact-sm" variant="default" onClick={() => work.mutate()}>
        Verify
      </Button>
    </>
  );
}
