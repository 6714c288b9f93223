/** uPlot inside React: made once, fed when the data changes, as wide as its place. */
import { useComputedColorScheme } from "@mantine/core";
import { useEffect, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { LineChartProps, Mark } from "@/charts/LineChart";
import { timeWords } from "@/charts/ticks";
import "@/charts/Plot.css";
import { count, localTime } from "@/parts/words";

const PALETTE = 6;

function colour(name: string): string {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

function faded(rgb: string, share: number): string {
  return share === 1 ? rgb : rgb.replace(/^rgb\((.*)\)$/, `rgba($1, ${share})`);
}

/** Dashed lines from top to bottom, each with a word on the side where there is room. */
function drawMarks(marks: Mark[], ink: string) {
  return (chart: uPlot) => {
    const { ctx, bbox } = chart;
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = ink;
    ctx.setLineDash([4, 4]);
    for (const { x, label } of marks) {
      const at = chart.valToPos(x, "x", true);
      if (at < bbox.left || at > bbox.left + bbox.width) continue;
      ctx.beginPath();
      ctx.moveTo(at, bbox.top);
      ctx.lineTo(at, bbox.top + bbox.height);
      ctx.stroke();
      const isLeft = at < bbox.left + bbox.width / 2;
      ctx.textAlign = isLeft ? "left" : "right";
      ctx.fillText(label, at + (isLeft ? 6 : -6), bbox.top + 12);
    }
    ctx.restore();
  };
}

/** As wide as the longest figure beside it. */
function sideWidth(chart: uPlot, words: string[] | null): number {
  const longest = Math.max(0, ...(words ?? []).map((word) => chart.ctx.measureText(word ?? "").width));
  return Math.ceil(longest / devicePixelRatio) + 20;
}

/** While nobody points at anything, the newest figures are read out. */
function newest(chart: uPlot) {
  if ((chart.cursor.left ?? -1) < 0) chart.setLegend({ idx: chart.data[0].length - 1 }, false);
}

const POWERS = Array.from({ length: 60 }, (_, power) => 2 ** power);

function optionsOf(
  { lines, isTime, height = 220, write, isLogarithmic, isBinary, range, marks = [] }: LineChartProps,
  width: number,
): uPlot.Options {
  const ink = colour("--dim");
  const grid = { stroke: colour("--line"), width: 1 };
  const axis = { stroke: ink, grid, ticks: grid };
  return {
    width,
    height,
    scales: { x: { time: isTime === true }, y: { distr: isLogarithmic ? 3 : 1, ...(range && { range }) } },
    cursor: { drag: { x: true, y: false } },
    hooks: { draw: [drawMarks(marks, ink)], ready: [newest], setData: [newest], setCursor: [newest] },
    axes: [
      { ...axis, ...(isTime && { space: 84, values: (_, ticks, __, ___, step) => timeWords(ticks, step) }) },
      {
        ...axis,
        size: sideWidth,
        ...(isBinary && { incrs: POWERS }),
        ...(write && { values: (_, ticks) => ticks.map((tick) => write(tick)) }),
      },
    ],
    series: [
      {
        label: isTime ? "time" : "step",
        value: (_, at) => (at === null ? "–" : isTime ? localTime(new Date(at * 1000)) : count(at)),
      },
      ...lines.map((line, at) => ({
        label: line.name,
        stroke: faded(colour(`--series-${line.series ?? (at % PALETTE) + 1}`), line.isFaint ? 0.3 : 1),
        width: line.isFaint ? 1 : 1.5,
        ...(at >= PALETTE && { dash: [6, 3] }),
        ...(line.isStepped && uPlot.paths.stepped && { paths: uPlot.paths.stepped({ align: 1 }) }),
        ...(write && { value: (_: uPlot, value: number | null) => write(value) }),
        spanGaps: true,
        points: { show: line.values.length < 30 },
      })),
    ],
  };
}

export default function Plot(props: LineChartProps) {
  const place = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | null>(null);
  const scheme = useComputedColorScheme();
  const data: uPlot.AlignedData = [props.x, ...props.lines.map((line) => line.values)];
  const latest = useRef({ props, data });
  const shape = JSON.stringify([
    props.lines.map(({ name, series, isStepped, isFaint }) => [name, series, isStepped, isFaint]),
    props.marks,
    props.isTime,
    props.height,
    props.isLogarithmic,
    props.isBinary,
    props.range,
    scheme,
  ]);
  useEffect(() => {
    latest.current = { props, data };
    const drawn = chart.current;
    // Whoever has zoomed in keeps their view while new points come.
    if (drawn) drawn.setData(data, !isZoomed(drawn));
  });
  useEffect(() => {
    const here = place.current;
    if (here === null) return;
    const drawn = new uPlot(optionsOf(latest.current.props, here.clientWidth || 600), latest.current.data, here);
    chart.current = drawn;
    const watcher = new ResizeObserver(() => drawn.setSize({ width: here.clientWidth, height: drawn.height }));
    watcher.observe(here);
    return () => {
      watcher.disconnect();
      drawn.destroy();
      chart.current = null;
    };
  }, [shape]);
  return <div ref={place} aria-hidden="true" style={{ minWidth: 0 }} />;
}

function isZoomed(chart: uPlot): boolean {
  const xs = chart.data[0];
  const { min, max } = chart.scales["x"] ?? {};
  if (min == null || max == null || xs.length === 0) return false;
  return min > (xs[0] ?? min) || max < (xs[xs.length - 1] ?? max);
}
