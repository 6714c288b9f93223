import { expect, test } from "vitest";
import { parse } from "yaml";
import { startOf, usingTemplate } from "@/pages/submit/start";

test("an address names a job, a template or a workload, or nothing", () => {
  expect(startOf({ from: "abc" })).toEqual({ kind: "job", id: "abc", origin: "job:abc" });
  expect(startOf({ template: "sweep" })).toMatchObject({ kind: "template", name: "sweep" });
  expect(startOf({ gpu: "H100", gpus: "4" })).toMatchObject({ kind: "text" });
  expect(startOf({})).toBeNull();
});

test("a template is written with its parameters and what they are for", () => {
  const parameter = { type: "text" as const, required: false, least: null, most: null, choices: [] as string[] };
  const text = usingTemplate({
    name: "tune",
    parameters: [
      { ...parameter, name: "lr", default: 0.1, doc: "the learning rate" },
      { ...parameter, name: "data", default: null, doc: "the table: rows" },
      { ...parameter, name: "kind", default: "on", doc: "" },
    ],
  });
  expect(parse(text)).toEqual({ job: { template: "tune", with: { lr: 0.1, data: null, kind: "on" } } });
  expect(text).toContain("lr: 0.1 # the learning rate");
});
