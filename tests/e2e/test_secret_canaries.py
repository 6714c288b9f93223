"""Twenty kinds of secrets go through the whole life of a job: it prints all that it has, fails, runs again, saves,
leaves outputs, is described and explained. Nothing of them may be found anywhere afterwards."""

import base64
import gzip
import json
import re
import subprocess
import sys
import tarfile
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from canaries import CommandLines, Hit, Scanner
from person import Person

# What a program prints that has no idea, and one that tries a little.
PROGRAM = """
import base64, json, os, pathlib, sys, urllib.parse
from crucible import train

print(dict(os.environ), flush=True)
for name, value in os.environ.items():
    print(name, value, json.dumps(value), urllib.parse.quote(value, safe=""), file=sys.stderr)
    print(base64.b64encode(value.encode()).decode(), base64.b64encode(b"user:" + value.encode()).decode())
for path in sorted(pathlib.Path(os.environ["CRUCIBLE_SECRETS"]).rglob("*")):
    if path.is_file():
        os.write(1, path.read_bytes() + b"\\n")
        for line in path.read_text().splitlines():
            print("line:", line)
token = pathlib.Path(os.environ["CRUCIBLE_TOKEN_FILE"]).read_text()
sys.stdout.write("token: " + token[:30]); sys.stdout.flush()
sys.stdout.write(token[30:] + "\\n")
train.log(1, loss=0.5)
pathlib.Path("weights").write_text("1")
train.save_checkpoint("weights", 1)
(pathlib.Path(os.environ["CRUCIBLE_OUTPUT"]) / "result.txt").write_text("fine")
if os.environ["CRUCIBLE_ATTEMPT"] == "0":
    raise RuntimeError("cannot log in with " + os.environ["USER_ENV"])
"""


def key_file(kind: str) -> bytes:
    lines = "\n".join(f"{kind}LINE{number}canary{number:08x}{kind}" for number in range(4))
    return f"-----BEGIN {kind} CANARY-----\n{lines}\n-----END {kind} CANARY-----\n".encode()


# By how they get in. Those in capitals are secrets of people, as `crucible secret set` takes them.
SET: Mapping[str, tuple[bytes, tuple[str, ...]]] = {
    "USER_ENV": (b"canary/user+env=0001", ()),
    "USER_FILE": (key_file("USERFILE"), ()),
    "USER_BOTH": (key_file("USERBOTH"), ()),
    "USER_QUOTED": (b'canary "quoted" \\ 0004 \xc3\xa4', ()),
    "USER_SETUP": (b"canary-of-setup-0005", ()),
    "TEAM_ENV": (b"canary-team-env-0006", ("--team", "vision")),
    "TEAM_FILE": (key_file("TEAMFILE"), ("--team", "vision")),
    "PROJECT_ENV": (b"canary-project-env-0008", ("--project", "imagenet")),
    "PROJECT_FILE": (key_file("PROJECTFILE"), ("--project", "imagenet")),
    "REPLACED": (b"canary-replaced-before-0010", ()),
    "REMOVED": (b"canary-removed-before-0011", ()),
}
# In the environment of the server, as operators give them.
ENVIRONMENT = {
    "AWS_SECRET_ACCESS_KEY": "canaryAwsSecretAccessKey0012",
    "AWS_SESSION_TOKEN": "canaryAwsSessionToken0013",
    "AZURE_STORAGE_ACCOUNT_KEY": "Y2FuYXJ5QXp1cmUwMDE0Y2FuYXJ5QXp1cmU=",
    "DOCKER_AUTH_CONFIG": '{"auths":{"r.example":{"auth":"Y2FuYXJ5UmVnaXN0cnkwMDE1Y2FuYXJ5"}}}',
    "CRUCIBLE_SMTP_PASSWORD": "canarySmtpPassword0016",
    "SLACK_WEBHOOK_URL": "https://hooks.example/canaryWebhook0017",
    "HTTPS_PROXY_PASSWORD": "canaryProxyPassword0018",
}
# Made by the server: their forms are known, their values are not.
TOKENS = {
    "enrolment token": rb"\bcre\.[A-Za-z0-9_-]+\.[0-9a-f]{64}",
    "node key": rb"\bcrn\.[A-Za-z0-9_-]+\.[0-9a-f]{64}",
    "attempt token": rb"\bcra\.[A-Za-z0-9_-]+\.[0-9a-f]{64}",
    "signed address": rb"\bcro\.[A-Za-z0-9_-]+\.[0-9a-f]{64}",
}
JOB = {
    "name": "canaries",
    "team": "vision",
    "project": "imagenet",
    "code": ".",
    "entrypoint": "program.py",
    "setup": 'echo "installing with $USER_SETUP"',
    "retry": {"limit": 1, "delay": "0s"},
    "secrets": [
        "USER_ENV",
        "USER_QUOTED",
        "USER_SETUP",
        "TEAM_ENV",
        "PROJECT_ENV",
        "REPLACED",
        {"name": "USER_FILE", "file": "user.pem"},
        {"name": "USER_BOTH", "file": "deep/both.pem", "env": "BOTH_FILE"},
        {"name": "TEAM_FILE", "file": "team.pem"},
        {"name": "PROJECT_FILE", "file": "project.pem"},
    ],
}


@pytest.fixture(scope="module")
def person(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Person]:
    someone = Person(tmp_path_factory.mktemp("canaries"))
    someone.env |= ENVIRONMENT
    yield someone
    someone.leave()


def test_nothing_of_twenty_kinds_of_secrets_is_found_anywhere(person: Person) -> None:
    values = {kind: value for kind, (value, _) in SET.items()} | {
        kind: value.encode() for kind, value in ENVIRONMENT.items()
    }
    with CommandLines(Scanner(values)) as watched:
        tokens = prepared(person)
        job_id = run(person)
        values |= tokens
        scanner = Scanner(values)
        hits = [*shown(person, scanner, job_id), *answers(person, scanner, job_id), *exported(person, scanner, job_id)]
    person.until("its machines to be gone", lambda: not list((person.data / "local").rglob("boot.json")))
    assert person.run("server", "stop").returncode == 0
    own = [person.data / name for name in ("secret-key", "secrets-keys", "admin-token")]
    hits += [*watched.hits, *scanner.look_into(person.data, own), *tokens_in(person.data, own)]
    assert hits == [] and watched.looks > 20
    assert len(values) + len(TOKENS) >= 20
    assert not [path for path in Path("/dev/shm").glob("crucible-*") if owner_of(path).startswith(str(person.data))]


def prepared(person: Person) -> dict[str, bytes]:
    """A team, a project, and everything set; returns the tokens and keys that there are then."""
    admin = call(person, "POST", "/v1/teams", {"name": "vision"})
    assert admin[0] == 201, admin
    assert call(person, "POST", "/v1/projects", {"name": "imagenet", "team": "vision"})[0] == 201
    assert call(person, "PUT", "/v1/teams/vision/members/admin", {"role": "manager"})[0] in (200, 201, 204)
    put(person, "REPLACED", b"canary-first-value-0019")
    for name, (value, owner) in SET.items():
        put(person, name, value, *owner)
    assert person.run("secret", "rm", "REMOVED").returncode == 0
    member = person.json("token", "create", "ci")
    return {
        "first value": b"canary-first-value-0019",
        "admin's token": (person.data / "admin-token").read_bytes().strip(),
        "another token": str(member["token"]).encode(),
        "key of secrets": bytes.fromhex((person.data / "secrets-keys").read_text().split()[0]),
        "key of secrets, as it is written": (person.data / "secrets-keys").read_bytes().split()[0],
        "key of machines": (person.data / "secret-key").read_bytes().strip(),
    }


def put(person: Person, name: str, value: bytes, *owner: str) -> None:
    command = [sys.executable, "-P", "-m", "crucible.cli.entry", "secret", "set", name, *owner]
    done = subprocess.run(command, input=value, env=person.env, cwd=person.folder, capture_output=True, timeout=90)
    assert done.returncode == 0, done.stderr.decode()


def run(person: Person) -> str:
    """It fails once and succeeds then; its log shows that it did print all of it."""
    person.write("program.py", PROGRAM)
    ran = person.run("submit", person.write("job.yaml", json.dumps({"job": JOB})), "-y")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "'USER_ENV': '***'" in ran.stdout and "installing with ***" in ran.stdout and "attempt 1" in ran.stderr
    return str(person.json("describe", "canaries")["id"])


def shown(person: Person, scanner: Scanner, job_id: str) -> Iterator[Hit]:
    """What people see who ask."""
    for words in (
        ("describe", job_id),
        ("describe", job_id, "-o", "json"),
        ("events", job_id),
        ("logs", job_id),
        ("why", job_id),
        ("launch-script", job_id),
        ("plan", "job.yaml"),
        ("artifacts", job_id),
        ("costs", job_id),
        ("metrics", job_id),
        ("secret", "ls"),
        ("secret", "ls", "-o", "json"),
        ("nodes", "-o", "json"),
    ):
        ran = person.run(*words)
        yield from scanner.look((ran.stdout + ran.stderr).encode(), " ".join(words))


def exported(person: Person, scanner: Scanner, job_id: str) -> Iterator[Hit]:
    """All that is known of the person whose secrets they are, with what their jobs wrote."""
    assert person.run("user", "export", "admin", "--logs", "--to", "admin.tar").returncode == 0
    with tarfile.open(person.folder / "admin.tar") as archive:
        archive.extractall(person.folder / "exported", filter="data")
    text = b"".join(path.read_bytes() for path in (person.folder / "exported").rglob("*") if path.is_file())
    assert job_id.encode() in text and b"installing with" in text and b"user.pem" in text, "it tells of the job"
    yield from scanner.look_into(person.folder / "exported")
    yield from tokens_in(person.folder / "exported", [])


def answers(person: Person, scanner: Scanner, job_id: str) -> Iterator[Hit]:
    """Of every route that can be read."""
    _, described = call(person, "GET", "/v1/openapi.json")
    filled = {"job_id": job_id, "task_index": "0", "step": "1", "name": "canaries", "provider": "local"}
    paths = [path for path, verbs in json.loads(described)["paths"].items() if "get" in verbs]
    assert len(paths) > 30 and "/v1/secrets" in paths
    for path in paths:
        address = re.sub(r"{(\w+)}", lambda found: filled.get(found[1], "x"), path)
        for query in ("", "?all=true") if path.endswith("/events") else ("",):
            status, body = call(person, "GET", address + query)
            assert status < 500, (address, body)
            yield from scanner.look(body, f"GET {address}")
            # Whoever may fetch objects is given their addresses.
            if "/outputs/" not in path and not path.endswith("/files"):
                yield from (Hit(kind, f"GET {address}") for kind, form in TOKENS.items() if re.search(form, body))


def call(person: Person, method: str, path: str, body: object = None) -> tuple[int, bytes]:
    if not (person.data / "server.json").exists():
        person.run("server", "start")
        person.until("the server to be there", (person.data / "server.json").exists)
    url = json.loads((person.data / "server.json").read_text())["url"]
    token = (person.data / "admin-token").read_text().strip()
    request = urllib.request.Request(url + path, method=method, headers={"Authorization": f"Bearer {token}"})
    if body is not None:
        request.add_header("Content-Type", "application/json")
        request.data = json.dumps(body).encode()
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            return reply.status, reply.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def tokens_in(folder: Path, without: list[Path]) -> Iterator[Hit]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path not in without:
            data = path.read_bytes()
            yield from (Hit(kind, str(path)) for kind, form in TOKENS.items() if re.search(form, data))


def owner_of(folder: Path) -> str:
    try:
        return (folder / "machine").read_text()
    except OSError:
        return ""


# --- the search itself can fail -------------------------------------------------------------------------------------

CANARY = b"canary-of-the-search/0001"


@pytest.mark.parametrize(
    "leak",
    [
        CANARY,
        CANARY[4:18],
        base64.b64encode(CANARY),
        base64.urlsafe_b64encode(b"user:" + CANARY),
        b'{"x": "canary-of-the-search\\/0001"}',
        b"canary-of-the-search%2F0001",
        CANARY.hex().encode(),
        b"\x00\xff" + CANARY + b"\x00",
    ],
)
def test_a_leak_in_a_file_is_found(tmp_path: Path, leak: bytes) -> None:
    scanner = Scanner({"canary": CANARY})
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "database-wal").write_bytes(b"x" * 5000 + leak)
    assert {hit.kind for hit in scanner.look_into(tmp_path)} == {"canary"}
    assert scanner.look_into(tmp_path, [tmp_path / "deep" / "database-wal"]) == []


def test_a_leak_in_a_packed_file_is_found(tmp_path: Path) -> None:
    (tmp_path / "packed").write_bytes(gzip.compress(b"deep inside: " + CANARY))
    assert Scanner({"canary": CANARY}).look_into(tmp_path)


def test_a_leak_in_a_name_or_a_command_line_is_found(tmp_path: Path) -> None:
    scanner = Scanner({"canary": b"canary-of-the-search-0002"})
    (tmp_path / "x-canary-of-the-search-0002").write_text("")
    assert scanner.look_into(tmp_path)
    with (
        CommandLines(scanner) as watched,
        subprocess.Popen([sys.executable, "-c", "input()", "canary-of-the-search-0002"], stdin=subprocess.PIPE) as one,
    ):
        while not watched.hits and watched.looks < 500:
            pass
        one.communicate(b"\n", timeout=30)
    assert {hit.kind for hit in watched.hits} == {"canary"}


def test_a_token_in_a_file_is_found(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"key crn.node-01." + b"0" * 64 + b" end")
    assert [hit.kind for hit in tokens_in(tmp_path, [])] == ["node key"]
