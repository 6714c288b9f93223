import react from "@vitejs/plugin-react";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";
import { stylesInUse } from "./styles-in-use.ts";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

const built = here("../src/crucible/web");
const SENT_AS_IT_IS = /(^|\/)(index\.html|\.vite\/.*)$/; // the server writes into the first and never sends the others

/** Every other file is packed once, here: the server sends it so, and reads nothing else. */
const packed = (): Plugin => ({
  name: "packed",
  apply: "build",
  closeBundle() {
    for (const entry of readdirSync(built, { recursive: true, withFileTypes: true })) {
      const path = join(entry.parentPath, entry.name);
      if (!entry.isFile() || SENT_AS_IT_IS.test(path)) continue;
      writeFileSync(`${path}.gz`, gzipSync(readFileSync(path), { level: 9 }));
      rmSync(path);
    }
  },
});

/** The server writes the way back into <base>; while one works on the page, nobody else does. */
const atTheRoot = (): Plugin => ({
  name: "at-the-root",
  apply: "serve",
  transformIndexHtml: (html) => html.replace('<base href="./" />', '<base href="/" />'),
});

export default defineConfig({
  base: "./", // below whatever prefix: the server says where in <base>
  plugins: [
    react(),
    stylesInUse(
      [here("./src"), here("./node_modules/@mantine/notifications/esm")],
      here("./node_modules/@mantine/core/esm"),
    ),
    packed(),
    atTheRoot(),
  ],
  resolve: { alias: { "@": here("./src") } },
  build: {
    outDir: built,
    manifest: true, // of what the first load is made: build.py adds it up
    emptyOutDir: true,
    target: "es2023",
    assetsInlineLimit: 0, // the policy of the page allows no data: addresses
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rolldownOptions: {
      output: {
        codeSplitting: {
          // What is fetched first in one piece, and what most pages share in another: every file costs a head.
          groups: [
            { name: "first", tags: ["$initial"], priority: 1 },
            { name: "shared", minShareCount: 8 },
          ],
        },
      },
    },
    chunkSizeWarningLimit: 1000, // the first load has a bound of its own: tests/integration/test_page_build.py
  },
  server: {
    proxy: Object.fromEntries(
      ["/v1", "/healthz"].map((path) => [
        path,
        { target: process.env["CRUCIBLE_URL"] ?? "http://127.0.0.1:7788", ws: true },
      ]),
    ),
  },
  test: { environment: "jsdom", setupFiles: ["./src/setup.test-env.ts"], restoreMocks: true },
});
