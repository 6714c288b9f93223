/** Files that somebody dropped or chose, as text. */
import type { CodeFile } from "@/pages/submit/package";

const MOST_FILES = 500;
const MOST_CHARS = 4_000_000; // what a browser keeps for a tab, and the server reads, is a little more

/** Adds them to those that are there; one of the same name is replaced. Raises where they are too many or no text. */
export async function withFiles(there: CodeFile[], dropped: File[]): Promise<CodeFile[]> {
  const read = await Promise.all(dropped.map(async (file) => ({ name: nameOf(file), text: await file.text() })));
  const binary = read.find(({ text }) => text.includes("\u0000"));
  if (binary) throw new Error(`${binary.name} is no text; ship it with crucible submit`);
  const all = new Map([...there, ...read].map((file) => [file.name, file]));
  const files = [...all.values()];
  const chars = files.reduce((sum, { text }) => sum + text.length, 0);
  if (files.length > MOST_FILES || chars > MOST_CHARS)
    throw new Error("that is more code than a page should carry; ship it with crucible submit");
  return files;
}

/** A chosen folder keeps the paths inside it. */
function nameOf(file: File): string {
  const path = file.webkitRelativePath;
  return path.includes("/") ? path.slice(path.indexOf("/") + 1) : file.name;
}
