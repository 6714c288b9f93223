/** All that one machine tells of itself. */
import { Anchor, Drawer, Stack, Table, Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { Command } from "@/parts/Command";
import { StateBadge } from "@/parts/StateBadge";
import { When } from "@/parts/When";
import { bytes, rate } from "@/parts/words";
import { placeOf } from "@/pages/nodes/places";
import type { Node } from "@/pages/nodes/queries";

export function NodeDetails({ node, onClose }: { node: Node | undefined; onClose: () => void }) {
  return (
    <Drawer
      opened={node !== undefined}
      onClose={onClose}
      position="right"
      size="md"
      title={node?.machine_id ?? ""}
      closeButtonProps={{ "aria-label": "close" }}
    >
      {node && <Facts node={node} />}
    </Drawer>
  );
}

function Facts({ node }: { node: Node }) {
  const facts: [string, React.ReactNode][] = [
    [
      "Node",
      <span key="id" className="mono">
        {node.id}
      </span>,
    ],
    ["State", <StateBadge key="state" state={node.state} />],
    ["Where", placeOf(node)],
    ["Type", `${node.instance_type}${node.is_spot ? ", spot" : ""}, ${rate(node.price_per_hour_usd)}`],
    ["GPUs", node.gpus > 0 ? `${node.gpus} × ${node.gpu ?? "GPU"}: ${node.devices.join(", ")}` : "none"],
    ["Rank", node.rank ?? "none runs there"],
    ["Address", node.address],
    ["Enrolled", <When key="enrolled" at={node.enrolled_at} />],
    ["Heard", <When key="heard" at={node.heard_at} />],
  ];
  const told = Object.entries(node.facts).filter(([, value]) => typeof value !== "object");
  return (
    <Stack>
      <Pairs label="Facts" pairs={facts} />
      <Anchor component={Link} to={`/jobs/${node.job_id}`} size="sm">
        the job that it works on
      </Anchor>
      <Command line={`crucible exec ${node.job_id} -- nvidia-smi`} />
      <Text fw={600} size="sm">
        Newest figures
      </Text>
      <Pairs
        label="Newest figures"
        pairs={Object.entries(node.usage).map(([name, value]) => [name, figure(name, value)])}
      />
      <Text fw={600} size="sm">
        As it was found
      </Text>
      <Pairs label="As it was found" pairs={told.map(([name, value]) => [name, figure(name, value)])} />
    </Stack>
  );
}

function Pairs({ label, pairs }: { label: string; pairs: [string, React.ReactNode][] }) {
  return (
    <Table verticalSpacing={3} withRowBorders={false} aria-label={label}>
      <Table.Tbody>
        {pairs.map(([name, value]) => (
          <Table.Tr key={name}>
            <Table.Th scope="row" fw={400} className="dim">
              {name}
            </Table.Th>
            <Table.Td style={{ overflowWrap: "anywhere" }}>{value}</Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}

/** Units are in the names. */
function figure(name: string, value: unknown): string {
  if (typeof value !== "number") return String(value);
  if (name.endsWith("_bytes")) return bytes(value);
  if (name.endsWith("_bytes_per_s")) return `${bytes(value)}/s`;
  if (name.endsWith("_mib")) return bytes(value * 1024 * 1024);
  return name.endsWith("_percent") ? `${value} %` : String(value);
}
