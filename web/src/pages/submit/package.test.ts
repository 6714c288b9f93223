import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { packed, tar } from "@/pages/submit/package";

const FILES = [
  { name: "train.py", text: "print('ü')\n" },
  { name: `${"deep/".repeat(25)}data.txt`, text: "x".repeat(512) },
];

test("tar itself reads what was packed", () => {
  const listed = execFileSync("tar", ["-tf", "-"], { input: tar(FILES), encoding: "utf8" });
  expect(listed.trim().split("\n")).toEqual(FILES.map(({ name }) => name));
  expect(execFileSync("tar", ["-xOf", "-", "train.py"], { input: tar(FILES), encoding: "utf8" })).toBe("print('ü')\n");
});

test("the same files are the same package, named by its content", async () => {
  const [one, two] = await Promise.all([packed(FILES), packed(FILES)]);
  expect(one.digest).toMatch(/^[0-9a-f]{64}$/);
  expect(two.digest).toBe(one.digest);
});

test("names that lead out of the code are refused", () => {
  for (const name of ["/etc/passwd", "../up.py", "a/../b", "", "x".repeat(101)])
    expect(() => tar([{ name, text: "" }])).toThrow();
});
