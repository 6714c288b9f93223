import { describe, expect, test } from "vitest";
import { fieldOf, parsed, typed, withField } from "@/pages/submit/form";

const TEXT = `# my job
job:
  name: tune # short
  resources: {gpus: 8, gpu_type: [H100, A100]}
  constraints:
    budget: 100 # dollars
`;

function read(text: string, ...field: string[]) {
  const document = parsed(text);
  return document && fieldOf(document, ["job", ...field]);
}

describe("a form and the text behind it", () => {
  test("fields are read from the text", () => {
    expect(read(TEXT, "name")).toBe("tune");
    expect(read(TEXT, "resources", "gpus")).toBe(8);
    expect(read(TEXT, "resources", "gpu_type")).toEqual(["H100", "A100"]);
    expect(read(TEXT, "constraints", "allow_spot")).toBeUndefined();
  });
  test("what is written leaves comments and everything else as they are", () => {
    const changed = withField(TEXT, ["job", "constraints", "budget"], 250);
    expect(changed).toBe(TEXT.replace("100 # dollars", "250 # dollars"));
  });
  test("mappings are opened on the way", () => {
    const changed = withField("job:\n  command: x\n", ["job", "checkpoint", "interval"], "10m");
    expect(changed).toBe("job:\n  command: x\n  checkpoint:\n    interval: 10m\n");
  });
  test("an empty text becomes a job", () => {
    expect(withField("", ["job", "name"], "a")).toBe("job:\n  name: a\n");
    expect(withField("job:\n", ["job", "name"], "a")).toBe("job:\n  name: a\n");
  });
  test("an empty field is taken out, and a mapping with nothing left in it too", () => {
    expect(withField(TEXT, ["job", "constraints", "budget"], "")).not.toContain("constraints");
    expect(withField(TEXT, ["job", "resources", "gpus"], undefined)).toContain("gpu_type");
  });
  test("text that is no YAML is left alone", () => {
    expect(parsed("job: [")).toBeNull();
    expect(parsed("- a list\n")).toBeNull();
    expect(withField("job: [", ["job", "name"], "a")).toBe("job: [");
  });
  test("what was typed reads back as it was typed", () => {
    expect([typed("8"), typed("1.0"), typed("1.5"), typed("$5"), typed("")]).toEqual([8, "1.0", 1.5, "$5", ""]);
    for (const value of ["1.", "1.0", "on", "a: b", "# no", " x "])
      expect(read(withField(TEXT, ["job", "name"], typed(value)), "name")).toBe(value);
  });
});
