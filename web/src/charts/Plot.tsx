/** uPlot inside React: made once, fed when the data changes, as wide as its place. */
import { useComputedColorScheme } from "@mantine/core";
import { useEffect, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { LineChartProps, Mark } from "@/charts/LineChart";

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

/** Dashed lines from top to bottom, each with a word. */
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
      ctx.fillText(label, at + 4, bbox.top + 12);
    }
    ctx.restore();
  };
}

function optionsOf(
  { lines, isTime, height = 220, write, isLogarithmic, marks = [] }: LineChartProps,
  width: number,
): uPlot.Options {
  const ink = colour("--dim");
  const grid = { stroke: colour("--line"), width: 1 };
  const axis = { stroke: ink, grid, ticks: grid };
  return {
    width,
    height,
    scales: { x: { time: isTime === true }, y: { distr: isLogarithmic ? 3 : 1 } },
    cursor: { drag: { x: true, y: false } },
    hooks: { draw: [drawMarks(marks, ink)] },
    axes: [axis, { ...axis, size: 64, ...(write && { values: (_, ticks) => ticks.map((tick) => write(tick)) }) }],
    series: [
      {},
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
