import { beforeEach, describe, expect, test } from "vitest";
import { confirmedAs, draftFrom, isTouched, store, stored, STARTER } from "@/pages/submit/draft";

beforeEach(() => sessionStorage.clear());

describe("a draft", () => {
  test("survives a reload, for that person alone", () => {
    const draft = { ...draftFrom("template:sweep", "job:\n"), text: "job:\n  name: a\n" };
    store("ann", draft);
    expect(stored("ann")).toEqual(draft);
    expect(stored("bob").text).toBe(STARTER);
  });
  test("something else in its place is no draft", () => {
    sessionStorage.setItem("crucible.draft.ann", "{");
    expect(stored("ann").text).toBe(STARTER);
  });
  test("is touched once something would be lost", () => {
    const draft = draftFrom("", "a");
    expect(isTouched(draft)).toBe(false);
    expect(isTouched({ ...draft, text: "b" })).toBe(true);
    expect(isTouched({ ...draft, code: { kind: "files", files: [] } })).toBe(true);
  });
});

describe("the key that a job is sent with", () => {
  const once = confirmedAs(draftFrom("", "a"), "key-1");
  test("stays the same for the same text and code, however often it is confirmed", () =>
    expect(confirmedAs(once, "key-2").confirmed.key).toBe("key-1"));
  test("is another one for another text", () =>
    expect(confirmedAs({ ...once, text: "b" }, "key-2").confirmed.key).toBe("key-2"));
  test("is another one for other code", () =>
    expect(
      confirmedAs({ ...once, code: { kind: "files", files: [{ name: "a.py", text: "" }] } }, "key-2").confirmed.key,
    ).toBe("key-2"));
});
