/** Write a job and see where it would run and what that costs while you write; then submit it. */
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useMe, type Me } from "@/session/me";
import { Begin } from "@/pages/submit/Begin";
import { Desk } from "@/pages/submit/Desk";
import { useDraft } from "@/pages/submit/draft";
import { startOf } from "@/pages/submit/start";
import { Loaded } from "@/parts/Loaded";
import { Page } from "@/parts/Page";

const ABOUT = "Nothing is bought until you confirm.";

export default function SubmitPage() {
  const me = useMe();
  if (me.data) return <Begun me={me.data} />;
  return (
    <Page title="Submit" about={ABOUT}>
      <Loaded query={me}>{() => null}</Loaded>
    </Page>
  );
}

function Begun({ me }: { me: Me }) {
  const search = useSearch({ strict: false });
  const navigate = useNavigate();
  const [draft, change] = useDraft(me.user_id);
  const start = startOf(search);
  if (start === null || start.origin === draft.origin)
    return <Desk me={me} draft={draft} onChange={change} about={ABOUT} />;
  return (
    <Page title="Submit" about={ABOUT}>
      <Begin
        start={start}
        draft={draft}
        onBegin={change}
        onKeep={() => void navigate({ to: "/submit", search: {}, replace: true })}
      />
    </Page>
  );
}
