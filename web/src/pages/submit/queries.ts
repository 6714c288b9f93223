/** What the page of submitting asks: what a job file may say, what is wrong with this one, and where it would run. */
import { keepPreviousData, queryOptions, useQuery, type UseQueryResult } from "@tanstack/react-query";
import { useState } from "react";
import { api, told, type Shape } from "@/api/client";
import { ApiError, asApiError } from "@/api/errors";
import type { CodeFile } from "@/pages/submit/package";
import type { Plan } from "@/pages/submit/plan-rows";
import type { Schema } from "@/pages/submit/schema";

export type Problem = Shape<"SpecProblem"> & { isWarning: boolean };
export type Recommendations = Shape<"Recommendations">;
export type Preferences = Shape<"RecommendationAsked">["preferences"];

const KEPT_MS = 60_000; // texts that were typed on the way are soon forgotten

export const schemaQuery = queryOptions({
  queryKey: ["spec", "schema"],
  queryFn: async () => (await told(api.GET("/v1/spec/schema"))) as Schema,
  staleTime: Infinity,
});

export const examplesQuery = queryOptions({
  queryKey: ["spec", "examples"],
  queryFn: () => told(api.GET("/v1/spec/examples")),
  staleTime: Infinity,
});

export const templatesQuery = queryOptions({
  queryKey: ["templates"],
  queryFn: () => told(api.GET("/v1/templates")),
  staleTime: 30_000,
});

export function filledQuery(name: string, parameters: Record<string, string>) {
  return queryOptions({
    queryKey: ["templates", name, "filled", parameters],
    queryFn: ({ signal }) =>
      told(api.POST("/v1/templates/{name}/fill", { params: { path: { name } }, body: { parameters }, signal })),
    placeholderData: keepPreviousData,
    gcTime: KEPT_MS,
  });
}

/** The text of a job that is there already, and the code it was sent with. */
export function clonedQuery(jobId: string) {
  const params = { path: { job_id: jobId } };
  return queryOptions({
    queryKey: ["jobs", jobId, "clone"],
    queryFn: async () => {
      const [job, spec] = await Promise.all([
        told(api.GET("/v1/jobs/{job_id}", { params })),
        told(api.GET("/v1/jobs/{job_id}/spec", { params, headers: { accept: "application/json" } })),
      ]);
      return { text: (spec as Shape<"Spec">).spec_yaml, digest: job.code_digest };
    },
  });
}

function validQuery(text: string) {
  return queryOptions({
    queryKey: ["validate", text],
    queryFn: ({ signal }) => told(api.POST("/v1/validate", { body: { spec_yaml: text }, signal })),
    gcTime: KEPT_MS,
    staleTime: 30_000,
  });
}

/** An older request is given up as soon as there is another text. */
export function planQuery(text: string) {
  return queryOptions({
    queryKey: ["plan", text],
    queryFn: ({ signal }) => told(api.POST("/v1/plan", { body: { spec_yaml: text }, signal })),
    gcTime: KEPT_MS,
    staleTime: 30_000,
    refetchOnWindowFocus: false,
  });
}

export function recommendationsQuery(files: CodeFile[], entrypoint: string | undefined, preferences: Preferences) {
  return queryOptions({
    queryKey: ["recommendations", files, entrypoint, preferences],
    queryFn: ({ signal }) =>
      told(api.POST("/v1/recommendations", { body: { files, entrypoint, preferences }, signal })),
    gcTime: KEPT_MS,
    placeholderData: keepPreviousData,
    enabled: files.length > 0,
  });
}

export function useRecommendations(files: CodeFile[], entrypoint: string | undefined, preferences: Preferences) {
  return useQuery(recommendationsQuery(files, entrypoint, preferences));
}

export interface Checked {
  problems: Problem[];
  /** Whether the text as it stands now was found right. */
  isValid: boolean;
}

/** Everything that is wrong with the text, at its line; `settled` is the text that was asked about. */
export function useChecked(text: string, settled: string): Checked {
  const valid = useQuery(validQuery(settled));
  const plan = useQuery(planQuery(settled));
  const warnings = (valid.data?.warnings ?? []).map((one) => ({ ...one, isWarning: true }));
  const wrong = problemsOf(valid.error).length > 0 ? problemsOf(valid.error) : problemsOf(plan.error);
  return { problems: [...wrong, ...warnings], isValid: text === settled && valid.isSuccess && wrong.length === 0 };
}

export function problemsOf(error: unknown): Problem[] {
  if (!(error instanceof ApiError) || !Array.isArray(error.details["problems"])) return [];
  return (error.details["problems"] as Shape<"SpecProblem">[]).map((one) => ({ ...one, isWarning: false }));
}

export interface Planned {
  /** The last that there was. */
  plan: Plan | null;
  /** Whether it is of an older text. */
  isOld: boolean;
  isAsking: boolean;
  /** Why there is none for the text as it stands; problems of the text itself stand beside its lines instead. */
  error: ApiError | null;
  query: UseQueryResult<Plan>;
}

/** The plan of a text; until there is one, and where there can be none, that of the text before. */
export function usePlanned(text: string, settled: string): Planned {
  const query = useQuery(planQuery(settled));
  const [last, setLast] = useState<Plan | null>(null);
  if (query.data !== undefined && query.data !== last) setLast(query.data);
  const error = query.error && problemsOf(query.error).length === 0 ? asApiError(query.error) : null;
  const isAsking = query.isFetching || text !== settled;
  return { plan: query.data ?? last, isOld: query.data === undefined || text !== settled, isAsking, error, query };
}
