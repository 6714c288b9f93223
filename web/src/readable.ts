/** What Mantine paints too pale to be read: badges, links and outlines of a colour, and side notes. */
import { alpha, darken, luminance, type CSSVariablesResolver, type MantineColorsTuple } from "@mantine/core";

const ENOUGH = 4.5;
const STEP = 0.05;

export function contrast(one: string, other: string): number {
  const [dark = 0, light = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

/** The darkest shade, made no darker than it must be to stand on a pale one, hovered or not. */
export function inkOf(shades: MantineColorsTuple): string {
  let by = 0;
  while (contrast(darken(shades[9], by), shades[2]) < ENOUGH && by < 1) by += STEP;
  return darken(shades[9], by);
}

export const readable: CSSVariablesResolver = ({ colors }) => {
  const both = {
    "--mantine-color-dimmed": "var(--dim)",
    "--mantine-color-placeholder": "var(--dim)",
    "--mantine-color-error": "var(--bad)",
  };
  const named = Object.entries(colors).filter(([name]) => name !== "dark");
  return {
    variables: {},
    light: Object.assign({ ...both }, ...named.map(([name, shades]) => onLight(name, shades))) as Variables,
    dark: Object.assign({ ...both }, ...named.map(([name, shades]) => onDark(name, shades))) as Variables,
  };
};

type Variables = Record<string, string>;

function onLight(name: string, shades: MantineColorsTuple): Variables {
  const ink = inkOf(shades);
  return Object.fromEntries(["light-color", "text", "outline"].map((use) => [`--mantine-color-${name}-${use}`, ink]));
}

function onDark(name: string, shades: MantineColorsTuple): Variables {
  return {
    [`--mantine-color-${name}-light`]: alpha(shades[5], 0.16),
    [`--mantine-color-${name}-light-hover`]: alpha(shades[5], 0.22),
    [`--mantine-color-${name}-light-color`]: shades[2],
  };
}
