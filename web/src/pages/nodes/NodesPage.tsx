/** Machines and their GPUs: what is free, what works, and how hard. */
import { SimpleGrid } from "@mantine/core";
import { Empty } from "@/parts/Empty";
import { Figure } from "@/parts/Figure";
import { Loaded } from "@/parts/Loaded";
import { Page } from "@/parts/Page";
import { Panel } from "@/parts/Panel";
import { useAddress } from "@/parts/address";
import { count, plural } from "@/parts/words";
import { FreeGpus } from "@/pages/nodes/FreeGpus";
import { rows, summary } from "@/pages/nodes/heat";
import { HeatMap } from "@/pages/nodes/HeatMap";
import { placeOf } from "@/pages/nodes/places";
import { Hosts } from "@/pages/nodes/Hosts";
import { NodeDetails } from "@/pages/nodes/NodeDetails";
import { NodeTable } from "@/pages/nodes/NodeTable";
import { useNodes, type Node } from "@/pages/nodes/queries";

export default function NodesPage() {
  const query = useNodes();
  const [search, change] = useAddress();
  return (
    <Page title="Nodes" about="Machines that work on jobs that you see, and GPUs that are free.">
      <FreeGpus />
      <Loaded query={query} lines={6}>
        {({ items }) => (
          <>
            <Figures nodes={items} />
            {items.some((node) => node.gpus > 0) && (
              <Panel title="GPUs now">
                <HeatMap nodes={items} />
              </Panel>
            )}
            <Panel title="Machines">
              {items.length === 0 ? (
                <Empty title="No machine is held" command="crucible submit examples/hello/job.yaml">
                  One is found when a job needs it, and given back when it is over.
                </Empty>
              ) : (
                <NodeTable nodes={items} />
              )}
            </Panel>
            <NodeDetails
              node={items.find((node) => node.id === search["node"])}
              onClose={() => change({ node: undefined })}
            />
          </>
        )}
      </Loaded>
      <Hosts />
    </Page>
  );
}

function Figures({ nodes }: { nodes: Node[] }) {
  const { gpus, percent, idle } = summary(rows(nodes));
  const places = new Set(nodes.map(placeOf)).size;
  return (
    <SimpleGrid cols={{ base: 2, xs: 3 }}>
      <Figure label="Machines" value={count(nodes.length)} note={`in ${plural(places, "place")}`} />
      <Figure label="GPUs held" value={count(gpus)} note={idle > 0 ? `${idle} of them idle` : undefined} />
      <Figure
        label="GPUs computing"
        value={percent === null ? "–" : `${Math.round(percent)} %`}
        note={percent === null ? "no machine tells" : "the mean of those that tell"}
      />
    </SimpleGrid>
  );
}
