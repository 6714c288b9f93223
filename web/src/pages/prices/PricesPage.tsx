/** What is on sale and for how much, how that went, and who says so. */
import { Tabs } from "@mantine/core";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { filtersOf, searchOf, type Filters } from "@/pages/prices/filters";
import { HistoryTab } from "@/pages/prices/HistoryTab";
import { ListTab } from "@/pages/prices/ListTab";
import { OffersTab } from "@/pages/prices/OffersTab";
import { SourcesTab } from "@/pages/prices/SourcesTab";
import { Page } from "@/parts/Page";
import { TabStrip } from "@/parts/TabStrip";

const TABS = [
  { value: "offers", title: "Offers" },
  { value: "list", title: "Price list" },
  { value: "history", title: "History" },
  { value: "sources", title: "Sources" },
];

export default function PricesPage() {
  const search = useSearch({ strict: false });
  const navigate = useNavigate();
  const filters = filtersOf(search);
  const tab = TABS.find(({ value }) => value === search["tab"])?.value ?? "offers";
  const go = (next: Record<string, string | undefined>, replace = true) =>
    void navigate({ to: "/prices", search: next, replace, resetScroll: false });
  const change = (changes: Partial<Filters>) =>
    go({ tab: search["tab"], span: search["span"], ...searchOf({ ...filters, ...changes }) });
  return (
    <Page title="Prices" about="A price is a fact with a date and a source; old ones say so.">
      <Tabs value={tab} onChange={(next) => go({ ...search, tab: next ?? undefined }, false)} keepMounted={false}>
        <TabStrip value={tab}>
          {TABS.map(({ value, title }) => (
            <Tabs.Tab key={value} value={value}>
              {title}
            </Tabs.Tab>
          ))}
        </TabStrip>
        <Tabs.Panel pt="md" value="offers">
          <OffersTab filters={filters} onChange={change} />
        </Tabs.Panel>
        <Tabs.Panel pt="md" value="list">
          <ListTab filters={filters} onChange={change} />
        </Tabs.Panel>
        <Tabs.Panel pt="md" value="history">
          <HistoryTab
            filters={filters}
            span={search["span"] ?? ""}
            onChange={change}
            onSpan={(span) => go({ ...search, span })}
          />
        </Tabs.Panel>
        <Tabs.Panel pt="md" value="sources">
          <SourcesTab />
        </Tabs.Panel>
      </Tabs>
    </Page>
  );
}
