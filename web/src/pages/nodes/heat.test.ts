import { describe, expect, it } from "vitest";
import { level, rows, summary, type Machine } from "@/pages/nodes/heat";

const MACHINE: Machine = {
  id: "node-1",
  provider: "local",
  region: "here",
  instance_type: "local-2gpu",
  gpu: "H100",
  gpus: 2,
  devices: ["1", "3"],
  usage: {
    gpu0_percent: 90,
    gpu1_percent: 50,
    gpu3_percent: 0,
    gpu1_memory_mib: 40,
    gpu1_memory_total_mib: 80,
    cpu_percent: 3,
  },
};

describe("a row of the heat map", () => {
  it("has the GPUs that were handed out, not all of the machine", () => {
    expect(rows([MACHINE])[0]?.cells).toEqual([
      { gpu: "1", percent: 50, memory: 0.5 },
      { gpu: "3", percent: 0, memory: null },
    ]);
  });
  it("has those that are told of where devices have other names", () => {
    const [row] = rows([{ ...MACHINE, devices: ["GPU-abc", "GPU-def"] }]);
    expect(row?.cells.map((cell) => cell.gpu)).toEqual(["0", "1", "3"]);
  });
  it("has as many as are paid for where nothing is told", () => {
    const [row] = rows([{ ...MACHINE, devices: [], usage: {} }]);
    expect(row?.cells).toEqual([
      { gpu: "0", percent: null, memory: null },
      { gpu: "1", percent: null, memory: null },
    ]);
  });
  it("is not there for a machine without GPUs", () => {
    expect(rows([{ ...MACHINE, gpus: 0, devices: [] }])).toEqual([]);
  });
});

it("levels go from idle to busy", () => {
  expect([null, 0, 4.9, 5, 64, 65, 90, 100].map(level)).toEqual(["unknown", "0", "0", "1", "2", "3", "4", "4"]);
});

it("the sum is over those that tell", () => {
  expect(summary(rows([MACHINE, { ...MACHINE, usage: {} }]))).toEqual({ gpus: 4, percent: 25, idle: 1 });
  expect(summary([])).toEqual({ gpus: 0, percent: null, idle: 0 });
});
