import { describe, expect, test } from "vitest";
import { missingStart, preferencesOf, withBackend, withSuggested } from "@/pages/submit/apply";

const SUGGESTED = `job:
  name: "train"
  framework: "pytorch" # train.py:3, high confidence
  entrypoint: "train.py"
  resources:
    gpus: 1 # train.py:9, medium confidence
    gpu_memory: 24GB
`;

describe("what was recommended", () => {
  test("comes into the file with its reasons, beside what the file says", () => {
    const text = "job:\n  name: mine # keep\n  command: ./run.sh\n  env: {A: 1}\n";
    expect(withSuggested(text, SUGGESTED)).toBe(`job:
  name: mine # keep
  command: ./run.sh
  env: {A: 1}
  framework: "pytorch" # train.py:3, high confidence
  resources:
    gpus: 1 # train.py:9, medium confidence
    gpu_memory: 24GB
`);
  });
  test("says what is started only where the file does not", () => {
    expect(withSuggested("job:\n  priority: 1\n", SUGGESTED)).toContain('entrypoint: "train.py"');
    expect(withSuggested("job:\n  template: sweep\n", SUGGESTED)).not.toContain("entrypoint");
  });
  test("twice is once", () => {
    const once = withSuggested("job:\n  command: x\n", SUGGESTED);
    expect(withSuggested(once, SUGGESTED)).toBe(once);
  });
  test("a backend is its seller, and spot or not", () => {
    const spot = withBackend("job:\n  command: x\n", { provider: "aws", market: "spot" });
    expect(spot).toBe("job:\n  command: x\n  constraints:\n    providers: [aws]\n    allow_spot: true\n");
    expect(withBackend(spot, { provider: "local", market: "on_demand" })).toBe(
      "job:\n  command: x\n  constraints:\n    providers: [local]\n",
    );
  });
});

test("hours and budget of the file are known to whoever recommends", () =>
  expect(preferencesOf("job:\n  resources: {estimated_hours: 3}\n  constraints: {budget: 10}\n")).toEqual({
    duration_hours: 3,
    max_cost_usd: 10,
    data_privacy: false,
  }));

test("an entrypoint that is not shipped is noticed", () => {
  const files = [{ name: "train.py", text: "" }];
  expect(missingStart("job:\n  entrypoint: main.py\n", files)).toContain("main.py");
  expect(missingStart("job:\n  entrypoint: train.py\n", files)).toBeNull();
  expect(missingStart("job:\n  command: x\n", files)).toBeNull();
});
