/** Enter goes on where the line began, and deeper after a name that has nothing behind it yet. */
import type { StateCommand } from "@codemirror/state";

export function indentAfter(line: string): string {
  const [begin = ""] = /^\s*/.exec(line) ?? [];
  const isOpen = /:\s*(#.*)?$/.test(line) && !line.trimStart().startsWith("#");
  const dash = /^\s*(- +)(?=\S)/.exec(line)?.[1] ?? ""; // the fields of an item stand below its first one
  return begin + " ".repeat(dash.length + (isOpen ? 2 : 0));
}

export const newline: StateCommand = ({ state, dispatch }) => {
  const { from, to } = state.selection.main;
  const line = state.doc.lineAt(from);
  const insert = `${state.lineBreak}${indentAfter(line.text.slice(0, from - line.from))}`;
  dispatch(
    state.update({
      changes: { from, to, insert },
      selection: { anchor: from + insert.length },
      scrollIntoView: true,
      userEvent: "input",
    }),
  );
  return true;
};
