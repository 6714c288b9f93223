/** Of a library's styles only those that something on the page carries: a rule for classes of parts that nobody imports
 * goes. Its classes are written in modules beside its parts, which import each other. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { Plugin } from "vite";

const STYLES = "@mantine/core/styles.css";

/** `sources`: folders of whatever imports parts of the library at `library`. */
export const stylesInUse = (sources: string[], library: string): Plugin => ({
  name: "styles-in-use",
  apply: "build",
  enforce: "pre",
  transform(code, id) {
    if (!id.endsWith(STYLES)) return undefined;
    return { code: trimmed(code, classesOf(namesIn(sources), library)), map: null };
  },
});

const IMPORTED = /import\s*\{([^}]*)\}\s*from\s*"@mantine\/core"/g;

function namesIn(folders: string[]): Set<string> {
  const files = folders.flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: "utf8" })
      .filter((name) => /\.(tsx?|mjs)$/.test(name))
      .map((name) => join(folder, name)),
  );
  const lists = files.flatMap((file) =>
    [...readFileSync(file, "utf8").matchAll(IMPORTED)].map(([, list]) => list ?? ""),
  );
  return new Set(lists.flatMap((list) => list.split(",").map((one) => one.replace(/\btype\b|\bas\b.*/g, "").trim())));
}

/** Of the modules of these parts, and of all that they import. */
function classesOf(names: Set<string>, library: string): Set<string> {
  const index = join(library, "index.mjs");
  const waiting = importsOf(index).flatMap(({ list, path }) => (list.some((one) => names.has(one)) ? [path] : []));
  const seen = new Set<string>();
  const classes = new Set<string>();
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    if (seen.has(path) || !existsSync(path)) continue;
    seen.add(path);
    if (path.endsWith(".module.mjs"))
      for (const [name] of readFileSync(path, "utf8").matchAll(/\bm_[0-9a-f]+\b/g)) classes.add(name);
    waiting.push(...importsOf(path).map((one) => one.path));
  }
  return classes;
}

function importsOf(path: string): { list: string[]; path: string }[] {
  const found = readFileSync(path, "utf8").matchAll(/import\s*(?:\{([^}]*)\}|\w+)\s*from\s*"(\.[^"]*)"/g);
  return [...found].map(([, list = "", from = ""]) => ({
    list: list.split(",").map((one) => one.trim()),
    path: resolve(dirname(path), from),
  }));
}

/** Without rules all of whose classes of the library (`m_…`) are of no use. */
export function trimmed(css: string, classes: ReadonlySet<string>): string {
  let kept = "";
  let at = 0;
  for (let open = css.indexOf("{"); open >= 0; open = css.indexOf("{", at)) {
    const end = endOf(css, open);
    const head = css.slice(at, open);
    const body = css.slice(open + 1, end);
    if (/^\s*@(media|supports|layer|container)\b/.test(head)) {
      const within = trimmed(body, classes);
      if (within.trim() !== "") kept += `${head}{${within}}`;
    } else if (isOfUse(head, classes)) kept += `${head}{${body}}`;
    at = end + 1;
  }
  return kept + css.slice(at);
}

function isOfUse(selectors: string, classes: ReadonlySet<string>): boolean {
  const named = selectors.match(/\bm_[0-9a-f]+\b/g) ?? [];
  return named.length === 0 || named.some((one) => classes.has(one));
}

/** Of the brace that closes the one at `open`. */
function endOf(css: string, open: number): number {
  let depth = 0;
  for (let at = open; at < css.length; at += 1) {
    if (css[at] === "{") depth += 1;
    else if (css[at] === "}" && --depth === 0) return at;
  }
  return css.length;
}
