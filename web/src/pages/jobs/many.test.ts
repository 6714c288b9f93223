import { expect, it, vi } from "vitest";
import { ApiError } from "@/api/errors";
import type { Action } from "@/pages/job/actions/actions";
import { runMany } from "@/pages/jobs/many";

function action(run: Action["run"]): Action {
  return { name: "cancel", label: "Cancel", about: "", isPossible: () => true, run };
}

it("asks every one, even if one refuses, and says how many did", async () => {
  const run = vi.fn(async (id: string) => {
    if (id === "b") throw new ApiError("conflict", "it is over", 409);
    return null;
  });
  await expect(runMany(action(run), ["a", "b", "c"], "once")).rejects.toThrow("1 of 3 jobs refused: it is over");
  expect(run.mock.calls.map(([id]) => id)).toEqual(["a", "b", "c"]);
});

it("says nothing when all agree", async () => {
  await expect(
    runMany(
      action(async () => null),
      ["a"],
      "once",
    ),
  ).resolves.toBeUndefined();
});
