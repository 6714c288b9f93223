import { expect, it } from "vitest";
import { parseSearch, stringifySearch } from "@/search";

it("is read as it is written", () => {
  for (const search of [{ find: "1e5", wrap: "1" }, { next: "/jobs?tab=cost&x=1", find: "a b+c" }, {}])
    expect(parseSearch(stringifySearch(search))).toEqual(search);
});

it("leaves out what is not given", () => {
  expect(stringifySearch({ tab: undefined, task: "2" })).toBe("?task=2");
  expect(stringifySearch({ tab: undefined })).toBe("");
});
