"""The demo as it is found: jobs in every state, made through the API by the people whose they are, and what surrounds
them: budgets, alerts, secrets, a sold-out type. Whatever takes time goes on side by side."""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from examples.demo import present_jobs as jobs
from examples.demo.past_jobs import SEARCH, WORKFLOW
from examples.demo.people import ASSISTANT, MEMBERS, SEGMENTATION, TRANSLATION, VIEWER
from examples.demo.present_jobs import PresentJob

from crucible.client.api import TERMINAL, Client
from crucible.client.endpoint import Endpoint
from crucible.client.package import pack
from crucible.client.transport import Transport

# A computer that does other things as well needs its time.
PATIENCE_S = 240.0
LOOK_EVERY_S = 0.25
NOTICE_S = 6.0
A_CENT = 0.01
# A share of its limit that a budget is shown at, and what must be left for machines that run on it.
NEARLY, SOME_USD = 0.92, 45.0


@dataclass
class Present:
    """`tokens` are people's, by their names; `ids` the jobs', by theirs."""

    admin: Client
    wanted: Sequence[PresentJob]
    inbox: str
    tokens: dict[str, str] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)

    def make(self) -> None:
        with ExitStack() as open_clients:
            self._let_in(open_clients)
            self._surround()
            for job in self.wanted:
                self.ids[job.name] = self._submit(job)
            self._disturb()
            self._spend()
        for name in (SEARCH, WORKFLOW):
            self.ids |= {job["name"]: job["id"] for job in self.admin.all_jobs(name=name, limit=1)}

    # --- people and what they keep ---------------------------------------------------------------------------------

    def _let_in(self, open_clients: ExitStack) -> None:
        """Everybody asks for themselves."""
        url, self._clients = self.admin.endpoint.url, dict[str, Client]()
        for name in (*MEMBERS, VIEWER):
            self.tokens[name] = self.admin.create_token("demo", user=name)["token"]
            client = Client(Transport(Endpoint(url, self.tokens[name])))
            self._clients[name] = open_clients.enter_context(client)

    def _surround(self) -> None:
        admin, ada, dora = self.admin, self._clients["ada"], self._clients["dora"]
        dora.set_secret("HF_TOKEN", b"not-a-real-token", team="language")
        ada.set_secret("DATASET_KEY", b"not-a-real-key", project=SEGMENTATION)
        until = (datetime.now(UTC) + timedelta(days=30)).isoformat()
        admin.create_token("prometheus", grants=["metrics"], expires_at=until)
        admin.lab_fail({"kind": "no-capacity", "operation": "RunInstances", "type": jobs.SOLD_OUT})
        hook = ada.add_alert_channel(
            {"name": "vision-hook", "kind": "webhook", "address": f"{self.inbox}/vision", "team": "vision"}
        )
        chat = dora.add_alert_channel(
            {"name": "language-chat", "kind": "slack", "address": f"{self.inbox}/chat", "team": "language"}
        )
        admins = admin.add_alert_channel({"name": "on-call", "kind": "webhook", "address": f"{self.inbox}/on-call"})
        quiet = {"start": "22:00", "end": "07:00", "time_zone": "Europe/Zurich"}
        ada.add_alert_rule(
            {"name": "failures", "team": "vision", "kinds": ["failure", "stall"], "channels": [hook["id"]]}
        )
        dora.add_alert_rule(
            {"name": "money", "team": "language", "kinds": ["budget"], "channels": [chat["id"]], "quiet": quiet}
        )
        admin.add_alert_rule({"name": "everything bad", "least": "warning", "channels": [admins["id"]]})
        cheap = {"gpu": "H100", "market": "spot", "below_usd": 2.0}
        admin.add_alert_rule({"name": "cheap H100", "kinds": ["price"], "price": cheap, "channels": [admins["id"]]})
        admin.test_alert_channel(admins["id"])

    # --- jobs --------------------------------------------------------------------------------------------------------

    def _submit(self, job: PresentJob) -> str:
        client = self._clients[job.user]
        with pack(job.code) as package:
            if not client.has_package(package.digest):
                with package.path.open("rb") as file:
                    client.upload_package(package.digest, file, package.size)
            digest = package.digest
        deadline = (datetime.now(UTC) + timedelta(hours=30)).strftime("%Y-%m-%dT%H:%M:%SZ")
        made = client.submit(job.name, job.spec.replace("DEADLINE", deadline), code_digest=digest)
        if job is jobs.HELD:
            client.hold(made["id"], "waits for the new data")
        return made["id"]

    def _disturb(self) -> None:
        """What happens to them while they run."""
        resumed = self._id(jobs.RESUMED)
        self._until("the first machine has saved", lambda: self.admin.checkpoints(resumed) != [])
        self.admin.lab_preempt(self._machines(resumed), notice_s=NOTICE_S)
        if jobs.CANCELLED in self.wanted:
            wrong = self._id(jobs.CANCELLED)
            self._until("the wrong job runs", lambda: self._status(wrong) == "running")
            self._clients["chloe"].cancel(wrong)
        self._until("the job goes on elsewhere", lambda: self._runs_again(resumed))
        ending = [self._id(job) for job in (jobs.FAILED, jobs.COMPLETED, jobs.LABELS, jobs.COMPARED)]
        self._until("short jobs are over", lambda: all(self._status(one) in TERMINAL for one in ending))

    def _spend(self) -> None:
        """One project has hardly any money left, so its job is paused; one comes close to its limit."""
        budgets = {(one["scope"], one["name"]): one for one in self.admin.budgets()}
        close = budgets["project", ASSISTANT]
        needed = close["spent_usd"] + close["reserved_usd"]
        self.admin.change_budget(close["id"], limit_usd=round(max(close["spent_usd"] / NEARLY, needed + SOME_USD)))
        if jobs.PAUSED in self.wanted:
            paused = self._id(jobs.PAUSED)
            self._until("the job that will be paused runs", lambda: self._status(paused) == "running")
            short = budgets["project", TRANSLATION]
            now = self.admin.budget(short["id"])
            self.admin.change_budget(now["id"], limit_usd=round(now["spent_usd"] + now["reserved_usd"] + A_CENT, 2))
            self._until("its budget has paused it", lambda: self.admin.job(paused).get("desired") == "hold")

    def _id(self, job: PresentJob) -> str:
        return self.ids[job.name]

    def _status(self, job_id: str) -> str:
        return self.admin.job(job_id)["status"]

    def _machines(self, job_id: str) -> list[str]:
        newest = self.admin.attempts(job_id)[-1]
        return [machine["machine_id"] for machine in newest["machines"] if machine["machine_id"]]

    def _runs_again(self, job_id: str) -> bool:
        return any(one["number"] > 0 and one["started_at"] for one in self.admin.attempts(job_id))

    def _until(self, what: str, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not holds():
            if time.monotonic() > deadline:
                raise SystemExit(f"the demo waits in vain, {PATIENCE_S:g} s: {what}")
            time.sleep(LOOK_EVERY_S)
