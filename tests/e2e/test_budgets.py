"""A team with ten dollars and two trainings on spot machines whose price jumps: they save and stop in time, the Lab's
own bill is within the budget, the team hears of it by mail, by a signed webhook and in a chat, and after a top-up the
trainings go on from where they were and finish."""

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crash.server_process import ServerProcess, until
from crucible.client.api import TERMINAL, Client
from crucible.client.endpoint import Endpoint
from crucible.client.transport import Transport
from lab_process import RunningLab
from notice_receivers import PASSWORD, Receiver, SmtpSink, slack_receiver, smtp_sink, webhook_receiver
from person import Person

SPEED = 20.0
BUDGET_USD = 10
BUDGET = "team:vision:once"
WITHIN_S = 240.0
LOOK_S = 0.3
# Ten ticks of the keeper: whom it has not let go on by then, it does not.
SETTLED_S = 100 / SPEED
ADDRESS = "vision@example.org"
QUICK = (str(Path(__file__).with_name("quick_server.py")), "server")
# A jump, and then up and down for those who come late to it: a computer that is busy starts a server when it can.
SCENARIO = "name: a dear afternoon\nevents:\n  - {at: 7m, do: price, type: 'p3*', times: 4.5}\n" + "".join(
    f"  - {{at: {minute}m, do: price, type: 'p3*', times: {1.1 if minute % 6 == 4 else 1 / 1.1:.4f}}}\n"
    for minute in range(10, 70, 3)
)
# A step takes its time until the file is there.
SCRIPT = """
import os, pathlib, time
from crucible import train
found = train.latest_checkpoint()
step = found.step if found else 0
print("begins after", step, flush=True)
while step < 400:
    step += 1
    time.sleep(0.01 if os.path.exists({hurry!r}) else 0.4)
    if train.should_stop() or step % 20 == 0:
        pathlib.Path("state.bin").write_bytes(bytes([step % 256]) * 10_000)
        train.save_checkpoint("state.bin", step)
    if train.should_stop():
        raise SystemExit(143)
print("done at", step, flush=True)
"""
SPEC = """\
job:
  name: {name}
  team: vision
  priority: {priority}
  command: [{python}, -c, {script}]
  resources: {{gpus: 8, gpu_type: V100}}
  constraints: {{providers: [aws], strategy: cheapest, allow_spot: true}}
"""


@dataclass
class Team:
    """People at a shell, a server that lives in the Lab's time, where its notices arrive, and what they all say."""

    lab: RunningLab
    person: Person
    client: Client
    hurry: Path
    mail: SmtpSink
    hook: Receiver
    chat: Receiver

    def submit(self, name: str, priority: int) -> str:
        script = json.dumps(SCRIPT.format(hurry=str(self.hurry)))
        text = SPEC.format(name=name, priority=priority, python=sys.executable, script=script)
        return str(self.client.submit(name, text)["id"])

    @property
    def bill_usd(self) -> float:
        return float(self.lab.control.bill()["microusd"]) / 1e6

    def machines(self) -> list[Any]:
        return [one for one in self.lab.control.status()["machines"] if one["state"] != "terminated"]

    def began(self, job_id: str) -> list[int]:
        lines = [record["x"] for record in self.client.logs(job_id)]
        return [int(line.split()[-1]) for line in lines if line.startswith("begins after")]

    def heard(self, words: str) -> tuple[list[Any], list[Any], list[Any]]:
        """What came by mail, webhook and chat with these words in it."""
        mails = [one for one in self.mail.mails.items if words in f"{one['Subject']}\n{one.get_body().get_content()}"]
        hook, chat = ([one for one in at.messages.items if words in json.dumps(one)] for at in (self.hook, self.chat))
        return mails, hook, chat


@contextmanager
def a_team(folder: Path) -> Iterator[Team]:
    person, scenario = Person(folder), folder / "scenario.yaml"
    scenario.write_text(SCENARIO)
    with ExitStack() as stack:
        secret = ""
        mail = stack.enter_context(smtp_sink(folder))
        hook = stack.enter_context(webhook_receiver(lambda: secret, now=lambda: lab.control.clock()["now"]))
        chat = stack.enter_context(slack_receiver())
        lab = stack.enter_context(
            RunningLab(folder, speed=SPEED, boot_scale=0.2, regions="us-east-1", scenario=scenario)
        )
        options = ["--smtp-url", mail.url, "--smtp-ca", str(mail.ca_file)]
        options += [word for at in (hook, chat) for word in ("--alert-endpoint", at.origin)]
        clock, then = lab.control.clock(), time.monotonic()
        environment = {
            **lab.environment,
            "CRUCIBLE_LAB_CLOCK": f"{SPEED} {clock['now']} {then}",
            "CRUCIBLE_PROVIDERS": "aws",
            "CRUCIBLE_SMTP_PASSWORD": PASSWORD,
            "HOME": str(folder),
        }
        server = ServerProcess(person.data, gpus=0, program=QUICK, options=options, environment=environment)
        stack.callback(server.start().wait_ready().stop)
        token = (person.data / "admin-token").read_text()
        person.env |= {"CRUCIBLE_SERVER": server.url, "CRUCIBLE_TOKEN": token.strip()}
        client = stack.enter_context(Client(Transport(Endpoint(server.url, token), timeout_s=20.0)))
        team = Team(lab, person, client, folder / "hurry", mail, hook, chat)
        secret = prepared(team)
        yield team


def prepared(team: Team) -> str:
    """A team with ten dollars that wants to hear of its money in three places. Returns what signs its webhook."""
    team.client.create_team("vision")
    made = team.person.run("budget", "set", "team:vision", str(BUDGET_USD), "--warn", "0.25,0.5")
    assert made.returncode == 0, made.stderr
    places = (("mail", "email", ADDRESS), ("hook", "webhook", team.hook.url), ("chat", "slack", team.chat.url))
    channels = [
        team.client.add_alert_channel({"name": name, "kind": kind, "address": address, "team": "vision"})
        for name, kind, address in places
    ]
    ids = [channel["id"] for channel in channels]
    team.client.add_alert_rule({"name": "money", "team": "vision", "kinds": ["budget"], "channels": ids})
    return str(channels[1]["secret"])


def test_ten_dollars_are_kept_through_a_price_jump_and_a_top_up_goes_on_where_it_stopped(tmp_path: Path) -> None:
    with a_team(tmp_path) as team:
        jobs = [team.submit("first", 1), team.submit("second", 0)]

        until("both have stopped", Settled(lambda: have_stopped(team, jobs)), WITHIN_S, LOOK_S)
        check_bill(team, jobs)
        check_notices(team, jobs)

        team.hurry.touch()
        added = team.person.run("budget", "top-up", "team:vision", "90")
        assert added.returncode == 0 and "$100.00" in added.stdout, added.stderr
        over = lambda: all(team.client.job(one)["status"] in TERMINAL for one in jobs)  # noqa: E731
        until(f"both are over: {[team.client.why(one) for one in jobs]}", over, WITHIN_S, LOOK_S)
        check_end(team, jobs)


def have_stopped(team: Team, jobs: list[str]) -> bool:
    assert team.bill_usd <= BUDGET_USD
    return all(waits_for_money(team, one) for one in jobs) and not team.machines()


class Settled:
    """It is so, and stays so: what one job left over may let another go on for a while."""

    def __init__(self, is_so: Callable[[], bool]) -> None:
        self._is_so = is_so
        self._since = time.monotonic()

    def __call__(self) -> bool:
        if not self._is_so():
            self._since = time.monotonic()
        return time.monotonic() - self._since > SETTLED_S


def waits_for_money(team: Team, job_id: str) -> bool:
    """Paused; or let go on by what it cost before, and not bought for by what it would cost now."""
    job = team.client.job(job_id)
    return job["status"] in ("pending", "scheduled") and BUDGET in (job["reason"] or "")


def check_bill(team: Team, jobs: list[str]) -> None:
    assert BUDGET_USD / 3 < team.bill_usd <= BUDGET_USD
    said = team.person.json("budget", "show", "team:vision")
    assert said["per_hour_microusd"] == 0 and said["jobs"] == []
    rates = {
        one["rate_microusd"] for job in jobs for one in team.client.costs(job)["intervals"] if one["kind"] == "compute"
    }
    assert len(rates) > 1, "the price did not jump while they ran"
    for job_id in jobs:
        assert team.client.checkpoints(job_id), "it saved before it stopped"
    assert BUDGET in team.person.run("why", jobs[0]).stdout


def check_notices(team: Team, jobs: list[str]) -> None:
    """Shares of it, and each job that was stopped, in all three places; nothing that was refused there."""
    for words in ("25%", *(f"job {job_id}" for job_id in jobs)):
        until(f"all heard of {words}", lambda words=words: all(team.heard(words)), every_s=LOOK_S)  # type: ignore[misc]
    mails, told, said = team.heard(f"job {jobs[1]}")
    assert mails[0]["To"] == ADDRESS and team.mail.users and BUDGET in mails[0]["Subject"]
    assert {(one["kind"], one["team"]) for one in told[0]["notices"]} == {("budget", "vision")}
    assert told[0]["severity"] == "critical" and BUDGET in said[0]["text"]
    assert team.hook.bad == [] and team.chat.bad == [], "a signature or a shape was wrong"
    history = team.person.run("alert", "history", "--kind", "budget").stdout
    assert history.count("mail, hook, chat") >= 3, history


def check_end(team: Team, jobs: list[str]) -> None:
    for job_id in jobs:
        job, began = team.client.job(job_id), team.began(job_id)
        assert job["status"] == "completed", job["reason"]
        assert began[0] == 0 and len(began) >= 2 and began[-1] > 0, began
    until("every machine is gone", lambda: not team.machines(), every_s=LOOK_S)
    spent = lambda: team.client.budget(BUDGET)["spent_microusd"]  # noqa: E731
    owed = lambda: int(team.lab.control.bill()["microusd"])  # noqa: E731
    until("the budget says what the Lab's invoice says", lambda: spent() == owed(), every_s=LOOK_S)
