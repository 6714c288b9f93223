import { expect, it } from "vitest";
import { ApiError, unreachable } from "@/api/errors";
import { remedyOf } from "@/parts/remedy";

it("a hint of the server goes before the page's own words", () => {
  const error = new ApiError("no_lab", "There is no Lab.", 409, { hint: "crucible lab up" });
  expect(remedyOf(error)).toEqual({ words: "To mend it:", command: "crucible lab up" });
});

it("a message that names a command says what to do itself", () => {
  expect(remedyOf(new ApiError("not_found", "No such team; see crucible team ls", 404))).toBeNull();
});

it("what everybody may meet has a remedy", () => {
  expect(remedyOf(unreachable())?.command).toBe("crucible server status");
  for (const code of ["forbidden", "not_found", "stale_version", "busy", "internal"])
    expect(remedyOf(new ApiError(code, "It did not work.", 400))?.words).toBeTruthy();
});
