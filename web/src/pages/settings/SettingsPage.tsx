/** Health, tokens, people and what else is set up; each sees what is theirs to see. */
import { Tabs } from "@mantine/core";
import { Page } from "@/parts/Page";
import { useAddress } from "@/parts/address";
import { TabStrip } from "@/parts/TabStrip";
import { useMe } from "@/session/me";
import { About } from "@/pages/settings/About";
import { Audit } from "@/pages/settings/Audit";
import { Health } from "@/pages/settings/Health";
import { People } from "@/pages/settings/People";
import { Retention } from "@/pages/settings/Retention";
import { Secrets } from "@/pages/settings/Secrets";
import { tabsFor } from "@/pages/settings/tabs";
import { Teams } from "@/pages/settings/Teams";
import { Tokens } from "@/pages/settings/Tokens";

const PARTS: Record<string, () => React.ReactNode> = {
  health: Health,
  tokens: Tokens,
  secrets: Secrets,
  teams: Teams,
  people: People,
  audit: Audit,
  retention: Retention,
  about: About,
};

export default function SettingsPage() {
  const [search, , go] = useAddress();
  const tabs = tabsFor(useMe().data);
  const chosen = tabs.find((tab) => tab.name === search["tab"])?.name ?? "health";
  const Part = PARTS[chosen] ?? Health;
  return (
    <Page title="Settings">
      <Tabs
        value={chosen}
        onChange={(name) => go({ tab: name ?? undefined, user: undefined, team: undefined, subject: undefined })}
        keepMounted={false}
      >
        <TabStrip value={chosen} label="Parts of settings">
          {tabs.map((tab) => (
            <Tabs.Tab key={tab.name} value={tab.name}>
              {tab.title}
            </Tabs.Tab>
          ))}
        </TabStrip>
        <Tabs.Panel value={chosen} pt="md">
          <Part />
        </Tabs.Panel>
      </Tabs>
    </Page>
  );
}
