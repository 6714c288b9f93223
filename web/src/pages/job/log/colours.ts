/** Colours of a log, made legible: whatever a program chose, its text has a contrast of 4.5 to what is behind it. */
import type { CSSProperties } from "react";
import type { Colour, Look } from "@/pages/job/log/ansi";

export type Scheme = "light" | "dark";
export type Rgb = [number, number, number];

const LEAST = 4.5;
const PAPER: Record<Scheme, Rgb> = { light: [255, 255, 255], dark: [31, 33, 38] };
const INK: Record<Scheme, Rgb> = { light: [33, 37, 41], dark: [201, 206, 214] };
const PALETTE: Rgb[] = [
  [60, 60, 60],
  [192, 38, 38],
  [27, 122, 61],
  [154, 91, 0],
  [11, 98, 164],
  [138, 63, 252],
  [0, 118, 128],
  [130, 136, 145],
  [110, 118, 129],
  [225, 60, 60],
  [40, 160, 85],
  [190, 130, 10],
  [60, 140, 220],
  [180, 100, 255],
  [20, 160, 170],
  [225, 228, 232],
];

export function styleOf(look: Look, scheme: Scheme): CSSProperties {
  const [ink, paper] = look.isInverse ? [look.paper, look.ink] : [look.ink, look.paper];
  const behind = paper ?? (look.isInverse ? { rgb: INK[scheme] } : null);
  const style: CSSProperties = {};
  if (behind) style.background = css(rgbOf(behind));
  if (ink || behind) style.color = css(legible(ink ? rgbOf(ink) : INK[scheme], behind ? rgbOf(behind) : PAPER[scheme]));
  if (look.isBold) style.fontWeight = 700;
  if (look.isDim) style.color ??= "var(--dim)";
  if (look.isItalic) style.fontStyle = "italic";
  const lines = [look.isUnderlined && "underline", look.isStruck && "line-through"].filter(Boolean).join(" ");
  if (lines) style.textDecoration = lines;
  return style;
}

function rgbOf(colour: NonNullable<Colour>): Rgb {
  return "rgb" in colour ? colour.rgb : (PALETTE[colour.index] ?? [128, 128, 128]);
}

/** The colour, as far towards black or white as it takes to be read on `paper`. */
export function legible(ink: Rgb, paper: Rgb): Rgb {
  const goal: Rgb = luminance(paper) > 0.179 ? [0, 0, 0] : [255, 255, 255];
  for (let share = 0; share < 1; share += 0.1) {
    const mixed = ink.map((part, at) => Math.round(part + ((goal[at] ?? 0) - part) * share)) as Rgb;
    if (contrast(mixed, paper) >= LEAST) return mixed;
  }
  return goal;
}

export function contrast(one: Rgb, other: Rgb): number {
  const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b) as [number, number];
  return (light + 0.05) / (dark + 0.05);
}

function luminance(rgb: Rgb): number {
  const [r, g, b] = rgb.map((part) => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  }) as Rgb;
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function css([r, g, b]: Rgb): string {
  return `rgb(${r} ${g} ${b})`;
}
