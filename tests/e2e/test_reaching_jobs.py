"""exec, ssh, cp and port-forward against a real server and real agents, as a person uses them."""

import hashlib
import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent_process import carriers, is_alive
from crucible import Client
from crucible.client.errors import ServerTimeout
from crucible.model.errors import Conflict
from doubles.terminal import Terminal
from person import LIMIT_S, Person

PAIR = """
job:
  name: pair
  command: [sleep, "1000"]
  execution: {processes_per_node: 2}
  env: {MY_VALUE: "of the job"}
  retry: {limit: 0}
"""


def eventually(what: str, look: Callable[[], object], limit_s: float = LIMIT_S) -> None:
    end = time.monotonic() + limit_s
    while not look():
        assert time.monotonic() < end, f"not in time: {what}"
        time.sleep(0.02)


@contextmanager
def at_home(folder: Path) -> Iterator[Person]:
    """Ends every job and the server, and looks that nothing is left on this computer."""
    someone = Person(folder)
    try:
        yield someone
    finally:
        jobs = someone.run("ps", "-q").stdout.split()
        someone.run("cancel", *jobs)
        for job in jobs:
            someone.run("wait", job, "--timeout", "60")
        someone.run("server", "stop")


@pytest.fixture(scope="module")
def person(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Person]:
    with at_home(tmp_path_factory.mktemp("talking")) as someone:
        start(someone, "pair", PAIR)
        yield someone


def start(person: Person, name: str, spec: str) -> str:
    """The id of a job of which every rank has started."""
    job_id = person.run("submit", "-d", "-y", "-q", person.write(f"{name}.yaml", spec)).stdout.strip()
    person.until("every rank runs", lambda: ranks(person, job_id) == {"started"})
    return job_id


def ranks(person: Person, job_id: str) -> set[str]:
    listed: list[dict[str, list[dict[str, str]]]] = person.json("describe", job_id)["attempts"]  # type: ignore[assignment]
    return {rank["state"] for attempt in listed[-1:] for rank in attempt["ranks"]}


def sleeping(job: str, command: str) -> str:
    return f"job:\n  name: {job}\n  command: {json.dumps(command)}\n  retry: {{limit: 0}}\n"


def processes_of(mark: str) -> list[int]:
    """What runs with that word in its environment, beside ranks only."""
    return carriers("TEST_MARK", mark)


# --- exec --------------------------------------------------------------------------------------------------------


def test_a_command_runs_in_the_environment_and_folder_of_its_rank(person: Person) -> None:
    script = 'echo "$MY_VALUE $CRUCIBLE_RANK $RANK $CRUCIBLE_JOB_NAME"; basename "$PWD"; echo oops >&2; exit 7'
    for rank in ("0", "1"):
        ran = person.run("exec", "pair", "--rank", rank, "--", "sh", "-c", script)
        assert (ran.stdout, ran.stderr) == (f"of the job {rank} {rank} pair\ncode\n", "oops\n")
        assert ran.returncode == 7


def test_the_exit_code_is_the_commands_however_it_ends(person: Person) -> None:
    assert person.run("exec", "pair", "--", "true").returncode == 0
    assert person.run("exec", "pair", "--", "sh", "-c", "kill -9 $$").returncode == 137
    absent = person.run("exec", "pair", "--", "no-such-program")
    assert (absent.returncode, absent.stderr) == (127, "could not start no-such-program: No such file or directory\n")
    assert person.run("exec", "pair", "--", "/etc").returncode == 126


def test_arguments_reach_the_program_to_the_letter(person: Person) -> None:
    odd = ["a b", "$HOME", "'; echo x", "--rank", "ü\n", ""]
    ran = person.run(
        "exec", "pair", "--", sys.executable, "-c", "import json, sys; print(json.dumps(sys.argv[1:]))", *odd
    )
    assert json.loads(ran.stdout) == odd


def test_what_is_piped_in_is_read_to_its_end(person: Person) -> None:
    data = os.urandom(3_000_000)
    ran = subprocess.run(
        [sys.executable, "-m", "crucible.cli.entry", "exec", "pair", "--", "sha256sum"],
        input=data,
        env=person.env,
        capture_output=True,
        timeout=LIMIT_S,
    )
    assert ran.stdout.split()[0].decode() == hashlib.sha256(data).hexdigest()


FLOOD = """
import sys
for number in range(640):
    sys.stdout.buffer.write(bytes(100_000))
    sys.stdout.buffer.flush()
    open(sys.argv[1], "w").write(str(number + 1))
"""


def test_a_slow_reader_makes_the_program_wait_and_fills_no_memory(person: Person) -> None:
    sent = person.folder / "sent"
    server = int(json.loads((person.data / "server.json").read_text())["pid"])
    before = resident_mib(server)
    reader = open_reader(person, "exec", "pair", "--", sys.executable, "-c", FLOOD, str(sent))
    assert reader.stdout is not None
    first = os.read(reader.stdout.fileno(), 1000)
    until_still(sent)
    assert int(sent.read_text()) * 100_000 < 4_000_000, "it went on, and somebody keeps what nobody reads"
    assert resident_mib(server) - before < 16
    rest = reader.stdout.read()
    assert (len(first) + len(rest), reader.wait(LIMIT_S)) == (64_000_000, 0)
    reader.stdout.close()


def open_reader(person: Person, *argv: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "crucible.cli.entry", *argv],
        env=person.env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        bufsize=0,
    )


def until_still(file: Path) -> None:
    """Its content does not change any more."""
    seen, since = "", time.monotonic()
    end = since + LIMIT_S
    while not seen or time.monotonic() - since < 1.0:
        assert time.monotonic() < end, "it never stops"
        now = file.read_text() if file.exists() else ""
        if now != seen:
            seen, since = now, time.monotonic()
        time.sleep(0.02)


def resident_mib(pid: int) -> float:
    (line,) = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS")]
    return int(line.split()[1]) / 1024


def test_a_reader_that_has_enough_ends_the_program(person: Person) -> None:
    reader = open_reader(person, "exec", "pair", "--", "env", "TEST_MARK=enough", "yes")
    assert reader.stdout is not None
    assert reader.stdout.read(4) == b"y\ny\n"
    reader.stdout.close()
    assert reader.wait(LIMIT_S) == 0
    eventually("it is gone", lambda: not processes_of("enough"))


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_whoever_leaves_takes_along_what_runs_on_the_node(person: Person, signum: signal.Signals) -> None:
    mark = f"left-{signum}"
    script = "trap '' HUP TERM; sleep 900 & echo up; sleep 900"
    reader = open_reader(person, "exec", "pair", "--", "env", f"TEST_MARK={mark}", "sh", "-c", script)
    assert reader.stdout is not None
    assert reader.stdout.read(3) == b"up\n"
    assert len(processes_of(mark)) >= 2
    reader.send_signal(signum)
    assert reader.wait(LIMIT_S) == (130 if signum == signal.SIGINT else -signum)
    eventually("all of it is gone", lambda: not processes_of(mark))
    reader.stdout.close()
    assert ranks(person, "pair") == {"started"}, "the job never notices"


def test_what_a_program_leaves_behind_does_not_keep_its_person_waiting(person: Person) -> None:
    script = "sleep 900 & echo done"
    ran = person.run("exec", "pair", "--", "env", "TEST_MARK=behind", "sh", "-c", script)
    assert (ran.returncode, ran.stdout) == (0, "done\n")
    eventually("it is gone too", lambda: not processes_of("behind"))


# --- where there is nothing to reach -----------------------------------------------------------------------------


def test_a_job_that_is_over_says_so(person: Person) -> None:
    assert person.run("submit", "-y", "-q", person.write("short.yaml", sleeping("short", "true"))).returncode == 0
    for argv in (["exec", "short", "--", "true"], ["cp", "short:x", "."], ["port-forward", "short", "0:80"]):
        ran = person.run(*argv)
        assert ran.returncode == 1, argv
        assert ran.stderr.startswith("error: job short is completed; only where a rank runs")


def test_a_rank_or_job_that_is_not_there_is_not_found(person: Person) -> None:
    ran = person.run("exec", "pair", "--rank", "2", "--", "true")
    assert (ran.returncode, ran.stderr.splitlines()[0]) == (5, "error: job pair has no rank 2; it has 0 to 1")
    assert person.run("exec", "nobody", "--", "true").returncode == 5


def test_a_job_of_somebody_else_is_not_there(person: Person) -> None:
    person.run("user", "create", "eve")
    made = person.json("token", "create", "t", "--user", "eve")
    eve = {"CRUCIBLE_SERVER": server_url(person), "CRUCIBLE_TOKEN": str(made["token"])}
    job_id = str(person.json("describe", "pair")["id"])
    ran = person.run("exec", job_id, "--", "true", **eve)
    assert (ran.returncode, ran.stderr.splitlines()[0]) == (5, f"error: there is no job {job_id}")


def server_url(person: Person) -> str:
    return str(json.loads((person.data / "server.json").read_text())["url"])


def test_without_a_terminal_none_is_promised(person: Person) -> None:
    for argv in (["exec", "-t", "pair", "--", "true"], ["ssh", "pair"]):
        ran = person.run(*argv)
        assert ran.returncode == 2
        assert "needs a terminal" in ran.stderr


# --- cp ----------------------------------------------------------------------------------------------------------


def test_a_tree_goes_there_and_comes_back(person: Person) -> None:
    tree = person.folder / "tree"
    (tree / "sub").mkdir(parents=True)
    (tree / "sub" / "odd ä\n name").write_bytes(b"odd")
    (tree / "large").write_bytes(os.urandom(3_000_000))
    (tree / "run.sh").write_text("#!/bin/sh\necho ran\n")
    (tree / "run.sh").chmod(0o755)
    (tree / "link").symlink_to("/etc/passwd")
    there = person.run("cp", "tree", "pair/1:")
    assert there.returncode == 0, there.stderr
    assert there.stderr == "left out 'tree/link': neither a file nor a folder\ncopied 3 files, 3,000,022 bytes\n"
    assert person.run("exec", "pair", "--rank", "1", "--", "tree/run.sh").stdout == "ran\n"
    person.run("exec", "pair", "--", "ln", "-s", "/etc/passwd", "tree/evil")
    back = person.run("cp", "pair:tree", "back")
    assert back.returncode == 0, back.stderr
    assert "left out 'tree/evil'" in back.stderr
    for name in ("sub/odd ä\n name", "large", "run.sh"):
        assert (person.folder / "back" / name).read_bytes() == (tree / name).read_bytes()
    assert sorted(os.listdir(person.folder / "back")) == ["large", "run.sh", "sub"]


def test_a_single_file_keeps_or_takes_a_name(person: Person) -> None:
    person.write("one", "1")
    assert person.run("cp", "one", "pair:two").returncode == 0
    assert person.run("cp", "pair:two", ".").returncode == 0
    assert (person.folder / "two").read_text() == "1"
    said = person.json("cp", "pair:two", "three")
    assert said == {"files": 1, "size_bytes": 1, "left_out": []}


@pytest.mark.parametrize(
    ("argv", "code", "words"),
    [
        (("pair:nothing", "."), 1, "nothing: No such file or directory"),
        (("nothing", "pair:"), 1, "nothing: No such file or directory"),
        (("person", "pair:/no/such/folder/x"), 1, "there is no folder /no/such/folder; make it first"),
        (("a", "b"), 2, "one side is JOB:PATH"),
        (("pair:a", "pair:b"), 2, "one side is JOB:PATH"),
        (("./pair:a", "b"), 2, "one side is JOB:PATH"),
    ],
)
def test_a_copy_that_cannot_be_made_says_why(person: Person, argv: tuple[str, str], code: int, words: str) -> None:
    person.write("person", "x")
    ran = person.run("cp", *argv)
    assert ran.returncode == code
    assert words in ran.stderr.splitlines()[0]


# --- port-forward ------------------------------------------------------------------------------------------------


def test_twenty_connections_at_once_reach_a_port_of_the_node(person: Person) -> None:
    (person.folder / "served").write_bytes(os.urandom(700_000))
    serving = (
        "import http.server, functools\n"
        f"handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory={str(person.folder)!r})\n"
        "server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), handler)\n"
        "print(server.server_port, flush=True)\n"
        "server.serve_forever()\n"
    )
    with background(person, "exec", "pair", "--", sys.executable, "-c", serving) as node:
        assert node.stdout is not None
        far = node.stdout.readline().strip()
        with background(person, "port-forward", "pair", f"0:{far}", "--rank", "1") as way:
            assert way.stderr is not None
            line = way.stderr.readline()
            assert line.endswith(f" leads to port {far} beside rank 1 of pair; Ctrl-C ends it\n")
            near = int(line.split()[0].rpartition(":")[2])
            with ThreadPoolExecutor(20) as pool:
                answers = list(pool.map(lambda _: fetched(near, "/served"), range(40)))
            assert set(answers) == {(person.folder / "served").read_bytes()}
            way.send_signal(signal.SIGINT)
            assert way.wait(LIMIT_S) == 0


def fetched(port: int, path: str) -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT_S)
    connection.request("GET", path)
    body = connection.getresponse().read()
    connection.close()
    return body


@contextmanager
def background(person: Person, *argv: str) -> Iterator[subprocess.Popen[str]]:
    with person.start(*argv) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_port_where_nobody_listens_is_a_clear_error(person: Person) -> None:
    with background(person, "port-forward", "pair", "0:1") as way:
        assert way.stderr is not None
        near = int(way.stderr.readline().split()[0].rpartition(":")[2])
        with pytest.raises((http.client.HTTPException, OSError)):
            fetched(near, "/")
        assert way.stderr.readline() == "error: nothing listens on port 1 of the node\n"
        assert way.poll() is None, "the next connection may find somebody"


@pytest.mark.parametrize("pair", ["x", "70000", "80:", "1:2:3", "-1", "5:0"])
def test_ports_that_are_none_are_refused(person: Person, pair: str) -> None:
    assert person.run("port-forward", "pair", "--", pair).returncode == 2


# --- terminals ---------------------------------------------------------------------------------------------------


@contextmanager
def terminal(person: Person, *argv: str, rows: int = 24, columns: int = 80) -> Iterator[Terminal]:
    shown = Terminal(argv, {**person.env, "PS1": "$ ", "NO_COLOR": "1"}, rows=rows, columns=columns)
    try:
        yield shown
    finally:
        if shown.process.poll() is None:
            shown.process.kill()
            shown.end()


def test_a_shell_works_as_one_and_gives_the_terminal_back(person: Person) -> None:
    with terminal(person, "ssh", "pair", "1", rows=33, columns=101) as shell:
        modes = shell.modes()
        shell.type("echo rank $CRUCIBLE_RANK $((6 * 7)); stty size; tty\n")
        shell.until("rank 1 42\n33 101\n/dev/pts/")
        shell.resize(columns=77, rows=22)
        shell.type("until [ \"$(stty size)\" = '22 77' ]; do :; done; echo resi''zed\n")
        shell.until("resized")
        shell.type("env TEST_MARK=interrupted sleep 900\n")
        eventually("it sleeps", lambda: processes_of("interrupted"))
        shell.type("\x03")
        eventually("Ctrl-C went there", lambda: not processes_of("interrupted"))
        shell.type("echo still he''re; exit 3\n")
        shell.until("still here")
        shell.until_end()
        assert shell.modes() == modes
        assert shell.end() == 3


def test_the_way_out_ends_a_shell_that_hangs(person: Person) -> None:
    with terminal(person, "ssh", "pair") as shell:
        modes = shell.modes()
        shell.type("env TEST_MARK=stuck sh -c \"trap '' INT HUP TERM; echo hun''g; sleep 900; sleep 900\"\n")
        shell.until("hung")
        shell.type("\r~.")
        shell.until("left; what ran there was ended")
        shell.until_end()
        assert shell.modes() == modes
        assert shell.end() == 0
    eventually("it is gone", lambda: not processes_of("stuck"))


def test_ctrl_d_ends_what_reads_a_terminal(person: Person) -> None:
    with terminal(person, "exec", "-it", "pair", "--", "cat") as shown:
        shown.type("line\n")
        shown.until("line\nline\n")
        shown.type("\x04")
        assert shown.end() == 0


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGHUP])
def test_a_terminal_is_given_back_to_whoever_ends_the_command(person: Person, signum: signal.Signals) -> None:
    with terminal(person, "exec", "-t", "pair", "--", "sh", "-c", "echo up; exec sleep 900") as shown:
        modes = shown.modes()
        shown.until("up\n")
        assert shown.modes() != modes
        shown.process.send_signal(signum)
        shown.process.wait(LIMIT_S)
        assert shown.modes() == modes
        assert shown.end() == 128 + signum


# --- programs ----------------------------------------------------------------------------------------------------


def test_a_program_does_the_same(person: Person, tmp_path: Path) -> None:
    token = (person.data / "admin-token").read_text().strip()
    with Client.open(server_url(person), token) as client:
        job_id = client.jobs(name="pair")["items"][0]["id"]
        done = client.exec(job_id, ["sh", "-c", "cat; echo err >&2; exit 4"], rank=1, stdin=b"data")
        assert (done.exit_code, done.stdout, done.stderr) == (4, b"data", b"err\n")
        (tmp_path / "file").write_text("content")
        assert client.copy_to(job_id, str(tmp_path / "file"), "from-program").files == 1
        assert client.copy_from(job_id, "from-program", str(tmp_path / "again")).size_bytes == 7
        assert (tmp_path / "again").read_text() == "content"
        with pytest.raises(Conflict, match="No such file"):
            client.copy_from(job_id, "nothing", str(tmp_path / "x"))
        with pytest.raises(ServerTimeout, match=r"longer than 0\.5 s"):
            client.exec(job_id, ["env", "TEST_MARK=program", "sleep", "900"], timeout_s=0.5)
    eventually("it was ended", lambda: not processes_of("program"))


# --- ends --------------------------------------------------------------------------------------------------------


def test_a_shell_ends_with_its_rank(person: Person) -> None:
    start(person, "brief", sleeping("brief", "until [ -e go ]; do sleep 0.05; done"))
    with background(person, "exec", "brief", "--", "env", "TEST_MARK=beside", "sleep", "900") as beside:
        eventually("it runs", lambda: processes_of("beside"))
        assert person.run("exec", "brief", "--", "touch", "go").returncode == 0
        out, err = beside.communicate(timeout=LIMIT_S)
        assert (out, beside.returncode) == ("", 1)
        assert err.startswith("error: the rank has ended, and everything beside it")
    assert person.run("wait", "brief").returncode == 0
    eventually("it is gone", lambda: not processes_of("beside"))


def test_when_the_server_goes_so_does_what_ran_and_the_job_goes_on(tmp_path: Path) -> None:
    with at_home(tmp_path) as person:
        start(person, "steady", sleeping("steady", "sleep 1000"))
        with background(person, "exec", "steady", "--", "env", "TEST_MARK=restart", "sleep", "900") as visit:
            eventually("it runs", lambda: processes_of("restart"))
            assert person.run("server", "stop").returncode == 0
            _, err = visit.communicate(timeout=LIMIT_S)
            assert visit.returncode == 1
            assert err.startswith("error: the channel broke off")
            assert "the job itself goes on" in err
        eventually("it is gone", lambda: not processes_of("restart"))
        again = person.run("exec", "steady", "--", "echo", "again")
        assert (again.returncode, again.stdout) == (0, "again\n")


def test_when_the_agent_dies_nothing_of_a_person_stays(tmp_path: Path) -> None:
    with at_home(tmp_path) as person:
        start(person, "orphan", sleeping("orphan", "sleep 1000"))
        script = "trap '' HUP TERM; sleep 900 & echo up; sleep 900"
        with background(person, "exec", "orphan", "--", "env", "TEST_MARK=orphan", "sh", "-c", script) as visit:
            assert visit.stdout is not None
            assert visit.stdout.readline() == "up\n"
            (lock,) = (person.data / "local" / "machines").glob("*/lock")
            agent = int(lock.read_text())
            os.kill(agent, signal.SIGKILL)
            eventually("the agent is dead", lambda: not is_alive(agent))
            _, err = visit.communicate(timeout=LIMIT_S)
            assert visit.returncode == 1
            assert err.startswith("error: the node hung up")
        eventually("it is gone", lambda: not processes_of("orphan"))
