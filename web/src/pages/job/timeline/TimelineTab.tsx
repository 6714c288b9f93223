import { Stack } from "@mantine/core";
import { useElementSize } from "@mantine/hooks";
import { Charted } from "@/charts/Charted";
import { Command } from "@/parts/Command";
import { Loaded } from "@/parts/Loaded";
import { useNow } from "@/parts/now";
import { Told } from "@/parts/Told";
import { When } from "@/parts/When";
import { count, duration } from "@/parts/words";
import type { TabProps } from "@/pages/job/JobTabs";
import { Target } from "@/pages/job/history/Target";
import { answerOf, useAttemptsOf, useCheckpoints } from "@/pages/job/queries";
import { timeline, type Attempt, type Life } from "@/pages/job/timeline/geometry";
import { Legend, Picture } from "@/pages/job/timeline/Picture";

/** Where there is less room, it is scrolled. */
const LEAST_PX = 520;

export default function TimelineTab({ job, task, isOver }: TabProps) {
  const now = useNow();
  const { ref, width } = useElementSize();
  const { attempts, items } = useAttemptsOf(job, task, isOver);
  const checkpoints = useCheckpoints(job.id, task, isOver);
  const life: Life = {
    createdAt: job.timestamps.created_at,
    finishedAt: job.timestamps.finished_at,
    now: now.getTime(),
    attempts: items,
    checkpoints: checkpoints.data?.items ?? [],
  };
  return (
    <Stack gap="sm" data-answer={answerOf(job.id, "attempts")}>
      <Loaded query={attempts}>
        {({ items: all }) => (
          <Charted
            label="attempts over time"
            behind={behind(life, all, `${answerOf(job.id, "checkpoints")}?task=${task}`)}
          >
            <Legend />
            <div ref={ref} style={{ overflowX: "auto" }}>
              <Picture drawn={timeline(life, Math.max(width, LEAST_PX))} width={Math.max(width, LEAST_PX)} />
            </div>
          </Charted>
        )}
      </Loaded>
      <Command line={`crucible events ${job.id}`} />
    </Stack>
  );
}

/** `all`: the attempts of the answer; `saved`: where checkpoints come from. */
function behind({ attempts, checkpoints }: Life, all: Attempt[], saved: string) {
  return {
    columns: ["attempt", "on", "began", "provisioning", "running", "came to", "goes on from", "checkpoints"],
    rows: attempts.map((one) => {
      const at = `items.${all.indexOf(one)}`;
      return [
        <Told key="number" at={`${at}.number`} value={one.number} write={count} />,
        <Target key="on" attempt={one} at={at} />,
        <When key="at" at={one.created_at} exact />,
        <Between
          key="provisioning"
          one={one}
          at={at}
          from="created_at"
          to={one.started_at ? "started_at" : "ended_at"}
        />,
        <Between key="running" one={one} at={at} from="started_at" to="ended_at" />,
        one.outcome ?? one.phase,
        one.resume_step === null ? (
          "the beginning"
        ) : (
          <span key="from">
            step <Told at={`${at}.resume_step`} value={one.resume_step} write={count} />
          </span>
        ),
        <Steps key="saved" of={saved} checkpoints={checkpoints} attemptId={one.id} />,
      ];
    }),
  };
}

type Moment = "created_at" | "started_at" | "ended_at";

function Between({ one, at, from, to }: { one: Attempt; at: string; from: Moment; to: Moment }) {
  const [began, ended] = [one[from], one[to]];
  const seconds = began && ended ? (Date.parse(ended) - Date.parse(began)) / 1000 : null;
  return <Told at={`${at}.${from}..${at}.${to}`} value={seconds} write={duration} />;
}

function Steps({ of, checkpoints, attemptId }: { of: string; checkpoints: Life["checkpoints"]; attemptId: string }) {
  const mine = checkpoints.map((one, place) => ({ one, place })).filter(({ one }) => one.attempt_id === attemptId);
  return mine.map(({ one, place }, at) => (
    <span key={place} data-answer={of}>
      {at > 0 && ", "}
      <Told at={`items.${place}.step`} value={one.step} write={count} />
    </span>
  ));
}
