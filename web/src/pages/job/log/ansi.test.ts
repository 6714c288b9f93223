import { describe, expect, it } from "vitest";
import { ORDINARY, plain, spans } from "@/pages/job/log/ansi";
import { contrast, legible, styleOf, type Rgb } from "@/pages/job/log/colours";

const ESC = "\x1b";

describe("what a terminal would show", () => {
  it("text without escapes is one span", () => {
    expect(spans("step 1")).toEqual([{ text: "step 1", look: ORDINARY }]);
  });

  it("colours begin and end where the program says", () => {
    const [green, rest] = spans(`${ESC}[1;32mok${ESC}[0m done`);
    expect(green).toEqual({ text: "ok", look: { ...ORDINARY, isBold: true, ink: { index: 2 } } });
    expect(rest).toEqual({ text: " done", look: ORDINARY });
  });

  it("knows bright, 256 and true colours, of ink and paper", () => {
    const looks = spans(`${ESC}[91ma${ESC}[48;5;196mb${ESC}[38;2;1;2;300mc${ESC}[38:5:244md`).map((span) => span.look);
    expect(looks.map((look) => look.ink)).toEqual([
      { index: 9 },
      { index: 9 },
      { rgb: [1, 2, 255] },
      { rgb: [128, 128, 128] },
    ]);
    expect(looks[1]?.paper).toEqual({ rgb: [255, 0, 0] });
  });

  it("a progress bar shows its last state, and what sticks out of the one before", () => {
    expect(plain("\r 10%\r 20%\r100%")).toBe("100%");
    expect(plain("downloading\rdone")).toBe("doneloading");
    expect(plain(`downloading\r${ESC}[Kdone`)).toBe("done");
    expect(plain("100%\r")).toBe("100%");
  });

  it("leaves out titles, links, cursor moves, bells and lone escapes", () => {
    expect(plain(`${ESC}]0;title\x07a${ESC}[2Jb${ESC}[?25lc\x07d${ESC}]8;;http://x${ESC}\\e${ESC}`)).toBe("abcde");
  });

  it("codes that nobody knows change nothing", () => {
    expect(spans(`${ESC}[38;9mx${ESC}[73my`).every((span) => span.look.ink === null)).toBe(true);
  });
});

describe("colours are legible", () => {
  const papers: Rgb[] = [
    [255, 255, 255],
    [31, 33, 38],
  ];

  it("whatever a program chose has a contrast of 4.5", () => {
    for (const paper of papers)
      for (let at = 0; at < 4096; at += 37) {
        const ink: Rgb = [(at >> 8) * 17, ((at >> 4) & 15) * 17, (at & 15) * 17];
        expect(contrast(legible(ink, paper), paper)).toBeGreaterThanOrEqual(4.5);
      }
  });

  it("swapped ink and paper are swapped in both schemes", () => {
    const style = styleOf({ ...ORDINARY, isInverse: true }, "dark");
    expect(style.background).toBe("rgb(201 206 214)");
    expect(style.color).toBeDefined();
  });
});
