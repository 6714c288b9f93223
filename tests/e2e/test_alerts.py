"""A job fails, and people hear of it: by mail, in a chat, in a program of theirs; also if the server dies between
knowing and telling, and if a channel is away for a while."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from crash.server_process import KILLED, ServerProcess, until
from notice_receivers import PASSWORD, Receiver, SmtpSink, slack_receiver, smtp_sink, webhook_receiver

FAILS = "job:\n  name: {name}\n  command: [sh, -c, 'echo broken; exit 3']\n  retry: {{limit: 0}}\n"


@dataclass
class Site:
    """A server whose notices go to three receivers, and somebody at a shell."""

    folder: Path
    server: ServerProcess
    mail: SmtpSink
    hook: Receiver
    chat: Receiver
    secret: str = ""

    def run(self, *argv: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        env = {**{k: v for k, v in os.environ.items() if not k.startswith("CRUCIBLE_")}, "HOME": str(self.folder)}
        env |= {"CRUCIBLE_SERVER": self.server.url, "CRUCIBLE_TOKEN": (self.server.data / "admin-token").read_text()}
        argv = (sys.executable, "-P", "-m", "crucible.cli.entry", *argv)
        return subprocess.run(
            argv, cwd=self.folder, env=env, input=stdin, capture_output=True, text=True, timeout=90, check=False
        )

    def json(self, *argv: str, stdin: str = "") -> Any:
        ran = self.run(*argv, "-o", "json", stdin=stdin)
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout)

    def fail(self, name: str) -> str:
        (self.folder / "job.yaml").write_text(FAILS.format(name=name))
        return self.run("submit", "job.yaml", "-y", "-d").stdout.strip()

    def heard(self, name: str) -> tuple[list[Any], list[Any], list[Any]]:
        """What the three receivers have of a job."""
        mails = [one for one in self.mail.mails.items if name in one["Subject"]]
        return mails, of(self.hook, name), of(self.chat, name)


def of(receiver: Receiver, name: str) -> list[Any]:
    return [one for one in receiver.messages.items if name in json.dumps(one)]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("alerts")
    with ExitStack() as stack:
        mail = stack.enter_context(smtp_sink(folder))
        hook = stack.enter_context(webhook_receiver(lambda: made.secret))
        chat = stack.enter_context(slack_receiver())
        options = ["--smtp-url", mail.url, "--smtp-ca", str(mail.ca_file)]
        for receiver in (hook, chat):
            options += ["--alert-endpoint", receiver.origin]
        data = folder / "data"
        server = ServerProcess(data, gpus=2, options=options, environment={"CRUCIBLE_SMTP_PASSWORD": PASSWORD})
        server.start().wait_ready()
        made = Site(folder, server, mail, hook, chat)
        stack.callback(server.kill)
        prepared(made)
        yield made
        server.stop()


def prepared(site: Site) -> None:
    """As a person does it: three channels, one rule."""
    assert site.run("alert", "channel", "add", "me", "email", "ann@example.org").returncode == 0
    assert site.run("alert", "channel", "add", "chat", "slack", "-", stdin=site.chat.url).returncode == 0
    site.secret = site.json("alert", "channel", "add", "hook", "webhook", site.hook.url)["secret"]
    made = site.run("alert", "add", "failures", "--kind", "failure", "--to", "me", "--to", "chat", "--to", "hook")
    assert made.returncode == 0 and "me, chat, hook" in made.stdout, made.stderr


def test_a_failed_job_is_told_everywhere_with_the_words_of_its_log(site: Site) -> None:
    job = site.fail("alpha")
    until("all heard of alpha", lambda: all(site.heard("alpha")))
    (mail,), (told,), (said,) = site.heard("alpha")
    assert mail["To"] == "ann@example.org" and "exit" in mail.get_body(("plain",)).get_content()
    assert told["notices"][0]["job"] == job and told["notices"][0]["kind"] == "failure"
    assert mail["Message-ID"].startswith(f"<{mail['X-Crucible-Delivery']}@")
    assert "alpha failed" in said["text"] and not site.hook.bad and not site.chat.bad
    history = site.run("alert", "history", "--job", job).stdout
    assert "alpha failed" in history and "me" in history and "chat" in history and "hook" in history


def test_a_server_that_dies_between_knowing_and_telling_tells_after_its_start(site: Site) -> None:
    """Before a message is made of it, before that is sent, and before it is known that it arrived."""
    for point in ("commit.alerts.fan_out.before", "commit.alerts.fan_out.after", "send.after"):
        name = f"doomed-{point.replace('.', '-')}"
        site.server.stop()
        site.server.start(point).wait_ready()
        site.fail(name)
        assert site.server.wait_for_end(60) == KILLED
        site.server.start().wait_ready()
        until(f"all heard of {name}", lambda name=name: all(site.heard(name)), 90)  # type: ignore[misc]
        mails, told, said = site.heard(name)
        ids = {one["X-Crucible-Delivery"] for one in mails}, {one["delivery"] for one in told}
        assert len(ids[0]) == len(ids[1]) == 1  # told twice, it has one id
        if point != "send.after":
            assert len(mails) == len(told) == len(said) == 1


def test_a_channel_that_was_away_gets_it_and_keeps_nobody_waiting(site: Site) -> None:
    site.hook.answers += [500, (429, {"Retry-After": "1"})]
    site.fail("bravo")
    until("mail and chat heard of bravo", lambda: all((site.heard("bravo")[0], site.heard("bravo")[2])))
    until("the webhook heard of bravo", lambda: bool(site.heard("bravo")[1]), 60)
    assert len(site.heard("bravo")[1]) == 1


def test_the_test_button_says_whether_it_arrived(site: Site) -> None:
    before = len(site.chat.messages.items)
    ran = site.run("alert", "test", "chat")
    assert ran.returncode == 0 and "took the message" in ran.stdout, ran.stderr
    assert site.chat.messages.wait(before + 1)[-1]["text"] == "A test of Crucible's alerts"
    site.hook.answers.append(503)
    refused = site.run("alert", "test", "hook")
    assert refused.returncode != 0 and "answered 503" in refused.stderr


def test_secrets_are_neither_shown_nor_stored_nor_logged(site: Site) -> None:
    shown = site.run("alert", "channel", "ls", "-o", "json").stdout
    stored = b"".join(path.read_bytes() for path in site.server.data.glob("crucible.db*"))
    logged = site.server.log.read_bytes()
    for secret in (site.secret, site.hook.url, PASSWORD):
        assert secret not in shown and secret.encode() not in stored and secret.encode() not in logged
