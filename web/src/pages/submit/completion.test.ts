import { describe, expect, test } from "vitest";
import { suggest } from "@/pages/submit/completion";
import type { Schema } from "@/pages/submit/schema";
import { nameAt, placeAt } from "@/pages/submit/where";

const SCHEMA: Schema = {
  type: "object",
  properties: {
    job: {
      type: "object",
      anyOf: [{}, {}], // which fields go together: no shape
      properties: {
        name: { type: "string", description: "shown in lists", examples: ["resnet50"] },
        framework: { enum: ["plain", "pytorch"], default: "plain" },
        resources: {
          type: "object",
          properties: {
            gpus: { type: "integer", default: 0, examples: [8] },
            gpu_type: { anyOf: [{ type: "string" }, { type: "array", items: { type: "string" } }], examples: ["H100"] },
          },
        },
        constraints: { type: "object", properties: { allow_spot: { type: "boolean", default: false } } },
        steps: { type: "array", items: { type: "object", properties: { name: {}, needs: {}, command: {} } } },
      },
    },
  },
};

/** The place is where the bar stands. */
function at(marked: string) {
  const position = marked.indexOf("|");
  return { text: marked.replace("|", ""), position };
}
function labels(marked: string) {
  const { text, position } = at(marked);
  return suggest(SCHEMA, text, position)?.suggestions.map(({ label }) => label) ?? null;
}

describe("what may be written here", () => {
  test("at the top there is only the job", () => expect(labels("|")).toEqual(["job"]));
  test("below job stand its fields, without those that are there, above or below", () =>
    expect(labels("job:\n  name: a\n  |\n  steps: []\n")).toEqual(["framework", "resources", "constraints"]));
  test("a deeper line belongs to the name above it", () =>
    expect(labels("job:\n  resources:\n    gpus: 8\n    |\n  name: a")).toEqual(["gpu_type"]));
  test("comments and empty lines between do not matter", () =>
    expect(labels("job:\n  resources: # what it needs\n\n    # more\n    g|")).toEqual(["gpus", "gpu_type"]));
  test("values are the choices of the field", () =>
    expect(labels("job:\n  framework: p|")).toEqual(["plain", "pytorch"]));
  test("a flag is true or false", () =>
    expect(labels("job:\n  constraints:\n    allow_spot: |")).toEqual(["true", "false"]));
  test("where anything goes, its default and examples are offered", () =>
    expect(labels("job:\n  resources:\n    gpus: |")).toEqual(["0", "8"]));
  test("choices are offered unasked, examples are not", () => {
    const whole = (marked: string) => {
      const { text, position } = at(marked);
      return suggest(SCHEMA, text, position)?.isWhole;
    };
    expect([whole("job:\n  framework: |"), whole("job:\n  f|"), whole("job:\n  name: |")]).toEqual([true, true, false]);
  });
  test("inside brackets too", () => {
    expect(labels("job:\n  resources: {gpus: 8, |")).toEqual(["gpu_type"]);
    expect(labels("job:\n  constraints: {allow_spot: |")).toEqual(["true", "false"]);
    expect(labels("job:\n  resources: {gpu_type: [|")).toEqual(["H100"]);
  });
  test("an item of a list has the fields of an item", () => {
    expect(labels("job:\n  steps:\n    - name: a\n      |")).toEqual(["needs", "command"]);
    expect(labels("job:\n  steps:\n  - name: a\n  - |")).toEqual(["name", "needs", "command"]);
  });
  test("an item of a list of texts is one of the examples", () =>
    expect(labels("job:\n  resources:\n    gpu_type:\n      - |")).toEqual(["H100"]));
  test("nothing in a comment", () => expect(labels("job:\n  # na|")).toBeNull());
  test("fields with fields of their own open the next line", () => {
    const { text, position } = at("job:\n  re|");
    expect(suggest(SCHEMA, text, position)?.suggestions.find(({ label }) => label === "resources")?.text).toBe(
      "resources:\n    ",
    );
  });
});

describe("where a position is", () => {
  test("the word that was begun is replaced", () => {
    const { text, position } = at("job:\n  framework: py|");
    expect(placeAt(text, position)).toMatchObject({ word: "py", from: position - 2, isValue: true });
  });
  test("the name under the pointer, with the way to it", () => {
    const { text, position } = at("job:\n  resources:\n    gp|us: 8");
    expect(nameAt(text, position)?.path).toEqual(["job", "resources", "gpus"]);
    expect(nameAt("job:\n  name: abc", 13)).toBeNull();
  });
});
