/** The editor in the colours of the page, light and dark alike: they are the page's variables. */
import { HighlightStyle } from "@codemirror/language";
import { EditorView } from "@codemirror/view";
import { tags } from "@lezer/highlight";

export const highlighting = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--series-1)" },
  { tag: [tags.string, tags.content], color: "var(--mantine-color-text)" },
  { tag: [tags.number, tags.bool, tags.null, tags.keyword], color: "var(--series-4)" },
  { tag: [tags.comment, tags.lineComment], color: "var(--dim)", fontStyle: "italic" },
  { tag: [tags.punctuation, tags.separator, tags.squareBracket, tags.brace], color: "var(--dim)" },
]);

const SUNKEN = { backgroundColor: "var(--sunken)" };
const CHOSEN = { backgroundColor: "color-mix(in srgb, var(--series-1) 28%, transparent)" };
const FLOATING = {
  backgroundColor: "var(--mantine-color-body)",
  color: "var(--mantine-color-text)",
  border: "1px solid var(--line)",
  borderRadius: "4px",
};

/** Drawn by lines: the library's own marks are images in addresses, which the page's policy keeps out. */
const LINE = { backgroundImage: "none", textDecoration: "underline wavy 1px", textUnderlineOffset: "3px" };
const MARK = { content: "normal", width: "9px", height: "9px", margin: "4px 2px", borderRadius: "50%" };

export const editorTheme = EditorView.theme({
  "&": { fontSize: "13px", backgroundColor: "transparent", color: "var(--mantine-color-text)", height: "100%" },
  "&.cm-focused": { outline: "2px solid var(--mantine-primary-color-filled)", outlineOffset: "-1px" },
  ".cm-scroller": { fontFamily: "var(--mantine-font-family-monospace)", lineHeight: "1.5" },
  ".cm-content": { caretColor: "var(--mantine-color-text)" },
  ".cm-cursor": { borderLeftColor: "var(--mantine-color-text)" },
  ".cm-gutters": { ...SUNKEN, minHeight: "100%", color: "var(--dim)", borderRight: "1px solid var(--line)" },
  ".cm-activeLine, .cm-activeLineGutter": SUNKEN,
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground, ::selection":
    CHOSEN,
  ".cm-selectionMatch": CHOSEN,
  ".cm-tooltip": FLOATING,
  ".cm-tooltip.cm-tooltip-autocomplete > ul": { fontFamily: "var(--mantine-font-family-monospace)", maxHeight: "16em" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]": { ...CHOSEN, color: "inherit" },
  ".cm-completionDetail": { color: "var(--dim)", fontStyle: "normal" },
  ".cm-completionInfo": { ...FLOATING, maxWidth: "320px", whiteSpace: "pre-wrap", fontSize: "12px" },
  ".cm-lintRange-error": { ...LINE, textDecorationColor: "var(--bad)" },
  ".cm-lintRange-warning": { ...LINE, textDecorationColor: "var(--warn)" },
  ".cm-lint-marker-error": { ...MARK, backgroundColor: "var(--bad)" },
  ".cm-lint-marker-warning": { ...MARK, backgroundColor: "var(--warn)", borderRadius: "2px" },
  ".cm-diagnostic": { whiteSpace: "pre-wrap", fontFamily: "var(--mantine-font-family)" },
  ".cm-panels": { ...SUNKEN, color: "inherit" },
  ".crucible-hover": { padding: "6px 8px", maxWidth: "360px", whiteSpace: "pre-wrap", fontSize: "12px" },
});
