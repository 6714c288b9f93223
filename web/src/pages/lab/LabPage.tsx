/** The Lab that this server buys in: a cloud on this computer, to look at and to break. */
import { Badge, Grid, Stack } from "@mantine/core";
import { Loaded } from "@/parts/Loaded";
import { Page } from "@/parts/Page";
import { Bill } from "@/pages/lab/Bill";
import { Faults } from "@/pages/lab/Faults";
import { Machines } from "@/pages/lab/Machines";
import { NoLab } from "@/pages/lab/NoLab";
import { Notes } from "@/pages/lab/Notes";
import { Regions } from "@/pages/lab/Regions";
import { Summary } from "@/pages/lab/Summary";
import { useLab } from "@/pages/lab/queries";
import { useAddress } from "@/parts/address";

export default function LabPage() {
  const [search] = useAddress();
  const query = useLab(search["ended"] === "yes");
  return (
    <Page
      title="Lab"
      about="A cloud on the server's computer: Amazon's protocols, real processes, a bill. Break it as you like."
      actions={
        <Badge color="teal" variant="light" size="lg" tt="none">
          nothing here costs money
        </Badge>
      }
    >
      <Loaded query={query} lines={8}>
        {(status) =>
          status.lab === null ? (
            <NoLab reason={status.reason} />
          ) : (
            <Stack gap="md">
              <Summary lab={status.lab} askedAt={query.dataUpdatedAt} />
              <Regions lab={status.lab} />
              <Machines lab={status.lab} />
              <Grid>
                <Grid.Col span={{ base: 12, lg: 5 }}>
                  <Faults />
                </Grid.Col>
                <Grid.Col span={{ base: 12, lg: 7 }}>
                  <Notes />
                </Grid.Col>
              </Grid>
              <Bill />
            </Stack>
          )
        }
      </Loaded>
    </Page>
  );
}
