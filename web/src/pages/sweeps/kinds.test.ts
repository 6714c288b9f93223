import { expect, it } from "vitest";
import { kindOf, showCommand } from "@/pages/sweeps/kinds";

it("knows what a job is made of", () => {
  expect(kindOf({ job_type: "hpo", steps: 0 })).toBe("search");
  expect(kindOf({ job_type: "inference", steps: 0 })).toBe("batch");
  expect(kindOf({ job_type: "training", steps: 3 })).toBe("workflow");
  expect(kindOf({ job_type: "training", steps: 0 })).toBeNull();
});

it("names the command that shows the same", () => {
  expect(showCommand("evaluation", "j")).toBe("crucible eval show j");
  expect(showCommand(null, "j")).toBe("crucible describe j");
});
