import { describe, expect, it } from "vitest";
import { matches, spliced, type Brief } from "@/pages/jobs/book";

/** Made so many seconds ago: the larger, the older. */
function job(age: number, more: Partial<Brief> = {}): Brief {
  const created_at = new Date(1_800_000_000_000 - age * 1000).toISOString();
  return { id: `job-${String(1000 - age)}`, name: `run ${age}`, user_id: "ann", created_at, ...more } as Brief;
}

const ages = (list: Brief[]) => list.map((one) => Number(one.name.split(" ")[1]));
const jobs = (...all: number[]) => all.map((age) => job(age));

describe("pages of a list", () => {
  it("the next page is put behind the last one", () => {
    const list = spliced(jobs(1, 2), { items: jobs(3, 4), next_cursor: "c" }, job(2));
    expect(ages(list)).toEqual([1, 2, 3, 4]);
  });

  it("new jobs push nobody out between two pages", () => {
    const list = spliced(jobs(3, 4, 5, 6), { items: jobs(1, 2), next_cursor: "c" }, null);
    expect(ages(list)).toEqual([1, 2, 3, 4, 5, 6]);
  });

  it("who left the list is gone when its page is asked again, and nobody is there twice", () => {
    expect(ages(spliced(jobs(1, 2, 3, 4), { items: jobs(1, 3), next_cursor: "c" }, null))).toEqual([1, 3, 4]);
    expect(ages(spliced(jobs(1, 2, 3, 4), { items: jobs(2, 3), next_cursor: "c" }, job(1)))).toEqual([1, 2, 3, 4]);
  });

  it("the last page ends the list", () => {
    expect(ages(spliced(jobs(1, 2, 3), { items: jobs(1), next_cursor: null }, null))).toEqual([1]);
    expect(spliced(jobs(1, 2), { items: [], next_cursor: null }, null)).toEqual([]);
  });

  it("jobs of one moment are told apart by their ids", () => {
    const [low, high] = [job(1, { id: "a" }), job(1, { id: "b" })];
    const list = spliced([high, low], { items: [low], next_cursor: null }, high);
    expect(list.map((one) => one.id)).toEqual(["b", "a"]);
  });
});

it("finds a job by any of its words", () => {
  const one = job(1, { name: "resnet", team: "Vision", reason: "waits: no offer" });
  expect(["RES", "vision", "no offer", "", " ann "].every((words) => matches(one, words))).toBe(true);
  expect(matches(one, "llama")).toBe(false);
});
