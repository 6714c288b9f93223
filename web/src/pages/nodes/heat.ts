/** What the heat map shows: every GPU that is held, machine by machine, and how busy it is. */
import { placeOf } from "@/pages/nodes/places";

export interface Machine {
  id: string;
  provider: string;
  region: string;
  instance_type: string;
  gpu: string | null;
  gpus: number;
  devices: string[];
  usage: Record<string, number>;
}

export interface Cell {
  gpu: string;
  /** 0 … 100; null: the machine does not tell. */
  percent: number | null;
  /** Of its memory, 0 … 1. */
  memory: number | null;
}

export interface Row {
  machine: string;
  title: string;
  cells: Cell[];
}

/** From idle to busy; text on each is readable. */
export type Level = "unknown" | "0" | "1" | "2" | "3" | "4";

export function rows(machines: Machine[]): Row[] {
  return machines
    .filter((machine) => machine.gpus > 0)
    .map((machine) => ({
      machine: machine.id,
      title: `${machine.instance_type} in ${placeOf(machine)}`,
      cells: numbers(machine).map((gpu) => cell(machine, gpu)),
    }));
}

/** Those that were handed out, where they are known by number; else those that the machine tells of; else as many as
 * are paid for. */
function numbers({ devices, usage, gpus }: Machine): string[] {
  const told = Object.keys(usage).flatMap((name) => /^gpu(\d+)_percent$/.exec(name)?.[1] ?? []);
  if (devices.length > 0 && devices.every((device) => /^\d+$/.test(device))) return devices;
  if (told.length > 0) return told.toSorted((a, b) => Number(a) - Number(b));
  return Array.from({ length: gpus }, (_, at) => String(at));
}

function cell({ usage }: Machine, gpu: string): Cell {
  const [used, total] = [usage[`gpu${gpu}_memory_mib`], usage[`gpu${gpu}_memory_total_mib`]];
  return {
    gpu,
    percent: usage[`gpu${gpu}_percent`] ?? null,
    memory: used !== undefined && total ? used / total : null,
  };
}

export function level(percent: number | null): Level {
  if (percent === null) return "unknown";
  if (percent < 5) return "0";
  if (percent < 35) return "1";
  if (percent < 65) return "2";
  return percent < 90 ? "3" : "4";
}

export interface Summary {
  gpus: number;
  /** Of those that tell, the mean; null: none does. */
  percent: number | null;
  idle: number;
}

export function summary(all: Row[]): Summary {
  const cells = all.flatMap((row) => row.cells);
  const told = cells.flatMap((one) => one.percent ?? []);
  const percent = told.length === 0 ? null : told.reduce((sum, one) => sum + one, 0) / told.length;
  return { gpus: cells.length, percent, idle: told.filter((one) => level(one) === "0").length };
}
