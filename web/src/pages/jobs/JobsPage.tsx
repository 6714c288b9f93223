import { Button, Group, Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useCallback, useState } from "react";
import { Empty } from "@/parts/Empty";
import { ErrorNote } from "@/parts/ErrorNote";
import { Stale, Waiting } from "@/parts/Loaded";
import { Page } from "@/parts/Page";
import { Command } from "@/parts/Command";
import { plural } from "@/parts/words";
import { mayChange, useMe } from "@/session/me";
import { matches, type Brief } from "@/pages/jobs/book";
import { BulkBar } from "@/pages/jobs/BulkBar";
import { FilterBar } from "@/pages/jobs/FilterBar";
import { commandOf, useFilters, type Filters } from "@/pages/jobs/filters";
import { JobTable } from "@/pages/jobs/JobTable";
import { useCounts } from "@/pages/jobs/queries";
import { StateChips } from "@/pages/jobs/StateChips";
import { useJobList, useRefreshed } from "@/pages/jobs/use-job-list";

export default function JobsPage() {
  const [filters, change] = useFilters();
  const counts = useCounts(filters);
  const may = mayChange(useMe().data);
  return (
    <Page
      title="Jobs"
      actions={
        may && (
          <Button size="xs" component={Link} to="/submit">
            Submit a job
          </Button>
        )
      }
    >
      <StateChips overview={counts.data} status={filters.status} onChange={(status) => change({ status })} />
      <FilterBar filters={filters} onChange={change} />
      <Listing filters={filters} mayPick={may} />
    </Page>
  );
}

function Listing({ filters, mayPick }: { filters: Filters; mayPick: boolean }) {
  const { list, listed } = useJobList(filters);
  const [first, setFirst] = useState(0);
  const [picked, setPicked] = useState<ReadonlySet<string>>(new Set());
  useRefreshed(list, filters.words === "" ? first : 0);
  const more = useCallback(() => void list.more(), [list]);
  const pick = useCallback((job: Brief) => setPicked((now) => flipped(now, job.id)), []);
  const shown = filters.words === "" ? listed.jobs : listed.jobs.filter((one) => matches(one, filters.words));

  if (listed.jobs.length === 0 && listed.error) return <ErrorNote error={listed.error} onRetry={more} />;
  if (listed.updatedAt === 0) return <Waiting lines={8} />;
  if (shown.length === 0 && listed.isWhole) return <None isFiltered={Object.values(filters).some(Boolean)} />;
  return (
    <>
      {listed.error !== null && <Stale at={listed.updatedAt} />}
      <BulkBar jobs={listed.jobs.filter((one) => picked.has(one.id))} onClear={() => setPicked(new Set())} />
      <JobTable
        key={filters.words}
        jobs={shown}
        loaded={listed.jobs.length}
        isWhole={listed.isWhole}
        picked={mayPick ? picked : null}
        onPick={pick}
        onPickAll={() => setPicked((now) => (now.size > 0 ? new Set() : new Set(shown.map((one) => one.id))))}
        top={list.topOf(filters.words)}
        onView={(row, top) => {
          setFirst(row);
          list.stay(filters.words, top);
        }}
        onNearEnd={more}
      />
      <Group justify="space-between">
        <Text size="xs" className="dim" role="status">
          {filters.words !== "" && `${plural(shown.length, "match", "matches")} among `}
          {plural(listed.jobs.length, "job")}
          {!listed.isWhole && (listed.isLoading ? ", more are coming…" : " so far")}
        </Text>
        <Command line={commandOf(filters)} />
      </Group>
    </>
  );
}

function flipped(set: ReadonlySet<string>, id: string): ReadonlySet<string> {
  const next = new Set(set);
  if (!next.delete(id)) next.add(id);
  return next;
}

function None({ isFiltered }: { isFiltered: boolean }) {
  if (isFiltered)
    return (
      <Empty title="No job fits" command="crucible ps -a">
        <Link to="/jobs">Show all of them</Link>
      </Empty>
    );
  return (
    <Empty title="There is no job yet" command="crucible submit job.yaml">
      crucible spec example writes a job file to start from; Submit shows its plan as you write it.
    </Empty>
  );
}
