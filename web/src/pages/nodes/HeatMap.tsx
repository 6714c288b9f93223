/** A cell for each GPU that is held, the darker the busier, its figure written in it. */
import { Anchor, Group, Text, Tooltip } from "@mantine/core";
import { Charted } from "@/charts/Charted";
import { useAddress } from "@/parts/address";
import { percent as share } from "@/parts/words";
import { level, rows, type Cell, type Level } from "@/pages/nodes/heat";
import classes from "@/pages/nodes/heat.module.css";
import type { Node } from "@/pages/nodes/queries";

const LEGEND: { level: Level; words: string }[] = [
  { level: "0", words: "idle" },
  { level: "1", words: "below 35 %" },
  { level: "2", words: "below 65 %" },
  { level: "3", words: "below 90 %" },
  { level: "4", words: "busy" },
  { level: "unknown", words: "not told" },
];

export function HeatMap({ nodes }: { nodes: Node[] }) {
  const [, , go] = useAddress();
  const all = rows(nodes);
  const table = all.flatMap((row) =>
    row.cells.map((cell) => [row.title, row.machine, cell.gpu, written(cell.percent), share(cell.memory)]),
  );
  return (
    <Charted
      label="How busy every GPU is"
      behind={{ columns: ["machine", "node", "GPU", "computing", "memory used"], rows: table }}
    >
      <div className={classes["rows"]}>
        {all.map((row) => (
          <div key={row.machine} className={classes["row"]}>
            <Anchor
              component="button"
              type="button"
              size="sm"
              ta="left"
              truncate
              onClick={() => go({ node: row.machine })}
              aria-label={`details of ${row.title}, ${row.machine}`}
            >
              {row.title}
            </Anchor>
            <div className={classes["cells"]} role="list" aria-label={`GPUs of ${row.title}`}>
              {row.cells.map((cell) => (
                <GpuCell key={cell.gpu} cell={cell} />
              ))}
            </div>
          </div>
        ))}
      </div>
      <Group gap="md" mt="sm">
        {LEGEND.map((one) => (
          <Group key={one.level} gap={6}>
            <span className={classes["cell"]} data-level={one.level} style={{ width: 18, height: 14 }} />
            <Text size="xs">{one.words}</Text>
          </Group>
        ))}
      </Group>
    </Charted>
  );
}

function GpuCell({ cell }: { cell: Cell }) {
  const words = `GPU ${cell.gpu}: ${written(cell.percent)} computing, ${share(cell.memory)} of its memory`;
  return (
    <Tooltip label={words}>
      <span className={classes["cell"]} role="listitem" aria-label={words} data-level={level(cell.percent)}>
        {cell.percent === null ? "–" : Math.round(cell.percent)}
      </span>
    </Tooltip>
  );
}

function written(percent: number | null): string {
  return percent === null ? "not told" : `${Math.round(percent)} %`;
}
