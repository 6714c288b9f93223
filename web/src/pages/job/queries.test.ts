import { expect, it } from "vitest";
import { LATER_MS, SOON_MS } from "@/api/queries";
import { pace } from "@/pages/job/queries";

it("what a job costs is looked at often until nothing of it is charged any more", () => {
  expect(pace(false, 0)).toBe(SOON_MS);
  expect(pace(true, undefined)).toBe(SOON_MS);
  expect(pace(true, 4.09)).toBe(SOON_MS);
  expect(pace(true, 0)).toBe(LATER_MS);
});
