/** Every machine that works, what it is, for whom, and how busy. */
import { Anchor, Badge, Table } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { Rows } from "@/parts/Rows";
import { StateBadge } from "@/parts/StateBadge";
import { When } from "@/parts/When";
import { useAddress } from "@/parts/address";
import { percent, rate } from "@/parts/words";
import { placeOf } from "@/pages/nodes/places";
import type { Node } from "@/pages/nodes/queries";

const COLUMNS = [
  "Machine",
  "State",
  "Where",
  "Type",
  "GPUs",
  { title: "CPU", isNumber: true },
  { title: "Memory", isNumber: true },
  { title: "Price", isNumber: true },
  "Job",
  "Heard",
];

export function NodeTable({ nodes }: { nodes: Node[] }) {
  const [, , go] = useAddress();
  return (
    <Rows label="Machines that work" columns={COLUMNS} minWidth={980}>
      {nodes.map((node) => (
        <Table.Tr key={node.id}>
          <Table.Td>
            <Anchor component="button" type="button" size="sm" className="mono" onClick={() => go({ node: node.id })}>
              {node.machine_id}
            </Anchor>
          </Table.Td>
          <Table.Td>
            <StateBadge state={node.state} />
          </Table.Td>
          <Table.Td>{placeOf(node)}</Table.Td>
          <Table.Td>
            {node.instance_type}{" "}
            {node.is_spot && (
              <Badge size="sm" variant="light" color="grape" tt="none">
                spot
              </Badge>
            )}
          </Table.Td>
          <Table.Td>{node.gpus > 0 ? `${node.gpus} × ${node.gpu ?? "GPU"}` : "–"}</Table.Td>
          <Table.Td className="number">{percent(part(node.usage["cpu_percent"], 100))}</Table.Td>
          <Table.Td className="number">
            {percent(part(node.usage["memory_used_bytes"], node.usage["memory_total_bytes"]))}
          </Table.Td>
          <Table.Td className="number">{rate(node.price_per_hour_usd)}</Table.Td>
          <Table.Td>
            <Anchor component={Link} to={`/jobs/${node.job_id}`} size="sm" className="mono">
              {node.job_id.slice(0, 13)}
            </Anchor>
          </Table.Td>
          <Table.Td>
            <When at={node.heard_at} />
          </Table.Td>
        </Table.Tr>
      ))}
    </Rows>
  );
}

export function part(some: number | undefined, all: number | undefined): number | null {
  return some === undefined || !all ? null : some / all;
}
