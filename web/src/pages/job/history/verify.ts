/** Has the server read every byte of a checkpoint, and hears how far it is. */
import { api, errorOf } from "@/api/client";
import { ApiError } from "@/api/errors";

export interface Verified {
  step: number;
  size_bytes: number;
  checked_bytes: number;
  is_valid?: boolean;
  problems?: string[];
  error?: string;
  message?: string;
}

/** The last thing that was said. Raises ApiError where nothing is known. */
export async function verify(
  jobId: string,
  task: number,
  step: number,
  onProgress: (said: Verified) => void,
): Promise<Verified> {
  const { data, error, response } = await api.POST("/v1/jobs/{job_id}/checkpoints/{step}/verify", {
    params: { path: { job_id: jobId, step: String(step) }, query: { task } },
    parseAs: "stream",
  });
  if (!response.ok || !data) throw errorOf(error, response);
  let last: Verified | null = null;
  for await (const said of spoken(data as ReadableStream<Uint8Array>)) {
    last = said;
    onProgress(said);
  }
  if (last?.error) throw new ApiError(last.error, last.message ?? "", response.status);
  if (last?.is_valid === undefined) throw new ApiError("unknown", "The server said nothing of it. Try again.", 0);
  return last;
}

async function* spoken(body: ReadableStream<Uint8Array>): AsyncGenerator<Verified> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    const lines = (rest + decoder.decode(value, { stream: !done })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) if (line) yield JSON.parse(line) as Verified;
    if (done) return;
  }
}
