/** What there was to hear, who is told of what, and where. */
import { Tabs } from "@mantine/core";
import { Channels } from "@/pages/alerts/Channels";
import { Notices } from "@/pages/alerts/Notices";
import { Rules } from "@/pages/alerts/Rules";
import { useAddress } from "@/parts/address";
import { Page } from "@/parts/Page";

const TABS = ["notices", "rules", "channels"];

export default function AlertsPage() {
  const [{ tab }, , go] = useAddress();
  const shown = TABS.find((one) => one === tab) ?? "notices";
  return (
    <Page
      title="Alerts"
      about="A notice is written when something happens; a rule says which go to which channels, and when."
    >
      <Tabs
        value={shown}
        keepMounted={false}
        onChange={(value) => go({ tab: value === "notices" ? undefined : (value ?? undefined) })}
      >
        <Tabs.List mb="md">
          <Tabs.Tab value="notices">Notices</Tabs.Tab>
          <Tabs.Tab value="rules">Rules</Tabs.Tab>
          <Tabs.Tab value="channels">Channels</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="notices">
          <Notices />
        </Tabs.Panel>
        <Tabs.Panel value="rules">
          <Rules />
        </Tabs.Panel>
        <Tabs.Panel value="channels">
          <Channels />
        </Tabs.Panel>
      </Tabs>
    </Page>
  );
}
