/** Events as they are shown: a job that saves all day long fills no page with it. */
export interface Change {
  seq: number;
  at: string;
  from?: string | null | undefined;
  to?: string | null | undefined;
}

export interface Folded<Event extends Change> {
  event: Event;
  /** How often it saved, where one row stands for many; the event is then the last of them. */
  saves: number;
}

const SAVING = "checkpointing";

/** The newest first, as they come: from and to saving, again and again, is one row. */
export function folded<Event extends Change>(items: Event[]): Folded<Event>[] {
  const rows: Folded<Event>[] = [];
  for (const event of items) {
    const last = rows.at(-1);
    if (isSaving(event) && last && isSaving(last.event)) last.saves += event.to === SAVING ? 1 : 0;
    else rows.push({ event, saves: event.to === SAVING ? 1 : 0 });
  }
  return rows;
}

function isSaving({ from, to }: Change): boolean {
  return (from === SAVING && to === "running") || (from === "running" && to === SAVING);
}
