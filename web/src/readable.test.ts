import { DEFAULT_THEME, mergeMantineTheme } from "@mantine/core";
import { describe, expect, it } from "vitest";
import { contrast, inkOf } from "@/readable";
import { theme } from "@/theme";

const whole = mergeMantineTheme(DEFAULT_THEME, theme);
const colours = Object.entries(whole.colors).filter(([name]) => name !== "dark");

describe("contrast", () => {
  it("is 21 between black and white, whichever comes first", () => {
    expect(contrast("#000", "#fff")).toBeCloseTo(21);
    expect(contrast("#fff", "#000")).toBeCloseTo(21);
  });
});

describe("what is written in a colour", () => {
  it.each(colours)("%s can be read on its pale shades and on white", (_, shades) => {
    for (const ground of [shades[1], shades[2], "#fff"])
      expect(contrast(inkOf(shades), ground)).toBeGreaterThanOrEqual(4.5);
  });

  it.each(["ember", "red"])("white can be read on a filled %s, which stands out on black", (name) => {
    const filled = whole.colors[name]?.[7] ?? "";
    expect(contrast(filled, "#fff")).toBeGreaterThanOrEqual(4.5);
    expect(contrast(filled, "#242424")).toBeGreaterThanOrEqual(2.8);
  });
});
