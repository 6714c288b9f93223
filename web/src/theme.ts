/** Colours, chosen so that text has a contrast of 4.5 on whatever it stands on, in both schemes (readable.test.ts). */
import { createTheme, DEFAULT_THEME, Menu, Modal, TableScrollContainer, type MantineColorsTuple } from "@mantine/core";

/** Of each colour, what filled things are painted with, in both schemes: white can be read on it, and it on black. */
const FILLED = 7;

export const theme = createTheme({
  primaryColor: "ember",
  primaryShade: FILLED,
  autoContrast: true,
  luminanceThreshold: 0.179, // where black and white can be read equally well
  colors: {
    ember: [
      "#fff3e8",
      "#ffe5d0",
      "#ffc9a0",
      "#ffab6c",
      "#ff9142",
      "#fc7d20",
      "#e8670b",
      "#c25204",
      "#a34204",
      "#7f3303",
    ],
    red: [
      ...DEFAULT_THEME.colors.red.slice(0, FILLED),
      "#c92a2a",
      "#b02525",
      "#8f1d1d",
    ] as unknown as MantineColorsTuple,
  },
  fontFamily: "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif",
  fontFamilyMonospace: "ui-monospace, 'Cascadia Mono', 'SF Mono', Menlo, Consolas, 'Liberation Mono', monospace",
  defaultRadius: "sm",
  cursorType: "pointer",
  respectReducedMotion: true,
  components: {
    // The very element that scrolls takes the focus, so that keys scroll it. What is only heard stays inside of it: else
    // the whole page could be scrolled sideways.
    TableScrollContainer: TableScrollContainer.extend({
      defaultProps: { type: "native" },
      styles: { scrollContainer: { position: "relative" } },
    }),
    Modal: Modal.extend({
      defaultProps: { closeButtonProps: { "aria-label": "close" }, attributes: { header: { role: "presentation" } } },
    }),
    // A menu holds its items and nothing else, or readers miscount them.
    Menu: Menu.extend({ defaultProps: { withInitialFocusPlaceholder: false } }),
  },
  headings: { fontWeight: "600", sizes: { h1: { fontSize: "1.5rem" }, h2: { fontSize: "1.15rem" } } },
});
