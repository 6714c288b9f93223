import { expect, test } from "vitest";
import { indentAfter } from "@/pages/submit/newline";

test.each([
  ["", ""],
  ["  name: a", "  "],
  ["job:", "  "],
  ["  resources: # what it needs", "    "],
  ["  # a note:", "  "],
  ["    - name: a", "      "],
  ["  gpu_type: [H100]", "  "],
])("after %j the next line begins with %j", (line, indent) => expect(indentAfter(line)).toBe(indent));
