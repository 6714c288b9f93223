import { expect, it } from "vitest";
import { folded } from "@/pages/job/history/folding";

const change = (seq: number, from: string | null, to: string) => ({ seq, at: `${seq}`, from, to });

it("a job that saves again and again is one row, with its last time", () => {
  const newestFirst = [
    change(9, "running", "completed"),
    change(8, "checkpointing", "running"),
    change(7, "running", "checkpointing"),
    change(6, "checkpointing", "running"),
    change(5, "running", "checkpointing"),
    change(4, "provisioning", "running"),
  ];
  expect(folded(newestFirst).map(({ event, saves }) => [event.seq, saves])).toEqual([
    [9, 0],
    [8, 2],
    [4, 0],
  ]);
});

it("a save under way is one, and what comes between two saves keeps them apart", () => {
  const rows = folded([
    change(5, "running", "checkpointing"),
    change(4, "provisioning", "running"),
    change(3, "running", "provisioning"),
    change(2, "checkpointing", "running"),
    change(1, "running", "checkpointing"),
  ]);
  expect(rows.map(({ event, saves }) => [event.seq, saves])).toEqual([
    [5, 1],
    [4, 0],
    [3, 0],
    [2, 1],
  ]);
});
