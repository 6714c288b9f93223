/** Sends a job: its code first, then the spec with the key of what was confirmed, so that once is once however often it
 * is sent. */
import { api, told } from "@/api/client";
import type { Code, Draft } from "@/pages/submit/draft";
import { packed } from "@/pages/submit/package";

export async function submitted(draft: Draft & { confirmed: { key: string } }): Promise<string> {
  const digest = await shipped(draft.code);
  const made = await told(
    api.POST("/v1/jobs", {
      body: { spec_yaml: draft.text, ...(digest !== null && { code_digest: digest }) },
      params: { header: { "Idempotency-Key": draft.confirmed.key } },
    }),
  );
  return made.id;
}

async function shipped(code: Code): Promise<string | null> {
  if (code.kind === "none") return null;
  if (code.kind === "job") return code.digest;
  const { digest, content } = await packed(code.files);
  await told(
    api.PUT("/v1/packages/{digest}", {
      params: { path: { digest } },
      body: content as unknown as string,
      bodySerializer: (body: unknown) => body as BodyInit,
      headers: { "content-type": "application/octet-stream" },
    }),
  );
  return digest;
}
