/** The text of a job file, with colours, completion and documentation from its schema, and what is wrong at its line. The
 * library for it is fetched when this page is opened. */
import { autocompletion, closeBrackets, completionKeymap, type CompletionSource } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { bracketMatching, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, lintKeymap, setDiagnostics, type Diagnostic } from "@codemirror/lint";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { Compartment, EditorState, type Text } from "@codemirror/state";
import {
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  hoverTooltip,
  keymap,
  lineNumbers,
  tooltips,
} from "@codemirror/view";
import { useEffect, useRef } from "react";
import { newline } from "@/pages/submit/newline";
import { about, suggest, type Suggested } from "@/pages/submit/completion";
import { editorTheme, highlighting } from "@/pages/submit/editor-theme";
import type { Problem } from "@/pages/submit/queries";
import { kindOf, schemaAt, type Schema } from "@/pages/submit/schema";
import { nameAt } from "@/pages/submit/where";
import { nonce } from "@/place";

interface Props {
  value: string;
  onChange: (value: string) => void;
  schema: Schema | undefined;
  problems: Problem[];
  /** Where to go, once each time it changes: a problem that was chosen. */
  goTo: { line: number; column: number } | null;
  describedBy: string;
}

export default function YamlEditor({ value, onChange, schema, problems, goTo, describedBy }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const helped = useRef(new Compartment());
  const latest = useRef({ value, onChange });
  useEffect(() => {
    latest.current = { value, onChange };
  });
  useEffect(() => {
    if (place.current === null) return;
    const changed = EditorView.updateListener.of((update) => {
      if (update.docChanged) latest.current.onChange(update.state.doc.toString());
    });
    const named = EditorView.contentAttributes.of({ "aria-label": "job file", "aria-describedby": describedBy });
    const extensions = [...always(), changed, named, helped.current.of([])];
    const made = new EditorView({
      parent: place.current,
      state: EditorState.create({ doc: latest.current.value, extensions }),
    });
    view.current = made;
    return () => {
      view.current = null;
      made.destroy();
    };
  }, [describedBy]);
  useEffect(() => {
    const state = view.current?.state;
    if (state && state.doc.toString() !== value)
      view.current?.dispatch({ changes: { from: 0, to: state.doc.length, insert: value } });
  }, [value]);
  useEffect(() => {
    if (schema) view.current?.dispatch({ effects: helped.current.reconfigure(help(schema)) });
  }, [schema, describedBy]);
  useEffect(() => {
    const state = view.current?.state;
    if (state)
      view.current?.dispatch(
        setDiagnostics(
          state,
          problems.map((one) => diagnostic(state.doc, one)),
        ),
      );
  }, [problems]);
  useEffect(() => {
    const now = view.current;
    if (goTo === null || now === null) return;
    now.dispatch({ selection: { anchor: positionOf(now.state.doc, goTo.line, goTo.column) }, scrollIntoView: true });
    now.focus();
  }, [goTo]);
  return <div ref={place} style={{ minWidth: 0, height: "100%" }} />;
}

function always() {
  return [
    EditorView.cspNonce.of(nonce),
    lineNumbers(),
    highlightActiveLine(),
    highlightActiveLineGutter(),
    highlightSelectionMatches(),
    history(),
    yaml(),
    indentUnit.of("  "),
    indentOnInput(),
    bracketMatching(),
    closeBrackets(),
    lintGutter(),
    tooltips({ parent: document.body }),
    syntaxHighlighting(highlighting),
    editorTheme,
    keymap.of([
      ...completionKeymap,
      { key: "Enter", run: newline },
      ...lintKeymap,
      ...searchKeymap,
      ...historyKeymap,
      ...defaultKeymap,
      indentWithTab,
    ]),
  ];
}

function help(schema: Schema) {
  const complete: CompletionSource = ({ state, pos, explicit }) => {
    const found = suggest(schema, state.doc.toString(), pos);
    if (found === null || (!explicit && !isAsked(found, state.sliceDoc(found.from, pos)))) return null;
    const options = found.suggestions.map((one) => ({
      label: one.label,
      apply: one.text,
      detail: one.detail.slice(0, 40),
      info: one.about,
      type: one.isValue ? "enum" : "property",
    }));
    return { from: found.from, options, validFor: (word) => /^[\w.-]*$/.test(word) && !isNamed(found, word) };
  };
  const told = hoverTooltip((editor, at) => {
    const name = nameAt(editor.state.doc.toString(), at);
    const found = name && schemaAt(schema, name.path);
    if (!name || !found) return null;
    return { pos: name.from, end: name.to, above: true, create: () => ({ dom: note(name.path, found) }) };
  });
  return [autocompletion({ override: [complete], icons: false }), told];
}

/** Unasked, there is help for a word that was begun, until it is a whole one: then Enter is Enter. */
function isAsked(found: Suggested, word: string): boolean {
  return found.isWhole && word !== "" && !isNamed(found, word);
}

function isNamed({ suggestions }: Suggested, word: string): boolean {
  return suggestions.some(({ label }) => label === word);
}

function note(path: (string | symbol)[], schema: Schema): HTMLElement {
  const dom = document.createElement("div");
  dom.className = "crucible-hover";
  const title = document.createElement("strong");
  title.textContent = path.filter((step) => typeof step === "string").join(".");
  const body = document.createElement("div");
  body.textContent = `${about(schema)}\nTakes: ${kindOf(schema)}`;
  dom.append(title, body);
  return dom;
}

function diagnostic(doc: Text, one: Problem): Diagnostic {
  const from = positionOf(doc, one.line, one.column);
  const line = doc.lineAt(from);
  const word = /^[^\s:,}\]]*/.exec(line.text.slice(from - line.from))?.[0].length ?? 0;
  const message = one.hint ? `${one.message} (${one.hint})` : one.message;
  return {
    from,
    to: Math.min(from + Math.max(word, 1), line.to),
    severity: one.isWarning ? "warning" : "error",
    message,
  };
}

function positionOf(doc: Text, line: number, column: number): number {
  const there = doc.line(Math.min(Math.max(line, 1), doc.lines));
  return Math.min(there.from + Math.max(column - 1, 0), there.to);
}
