"""What docker and podman are called with, and what their answers mean."""

import csv
import json
from typing import Any

import pytest

from crucible.agent import container
from crucible.agent.container import DOCKER, PODMAN, Unusable

BOX: dict[str, Any] = {
    "name": "crucible-att-1-0",
    "machine_id": "m-1",
    "rank_id": "att-1/0",
    "image": "pytorch/pytorch:2.6.0",
    "user": None,
    "agent": "1000:100",
    "is_rootless": False,
    "has_init": False,
    "shm_gib": None,
    "cpus": None,
    "memory_gib": None,
    "devices": [],
    "workdir": "/a/code",
    "mounts": [],
}


def run(runtime: str, *argv: str, passed: tuple[str, ...] = (), **changes: Any) -> list[str]:
    return container.run(runtime, {**BOX, **changes}, argv or ("train",), "/a/container-0.env", passed)


def value_of(words: list[str], option: str) -> str:
    return words[words.index(option) + 1]


@pytest.mark.parametrize("runtime", container.RUNTIMES)
def test_a_container_is_named_labelled_and_removed_when_it_ends(runtime: str) -> None:
    words = run(runtime, "python", "train.py", "--lr", "0.1; rm -rf /")
    assert words[:5] == [runtime, "run", "--rm", "--name", "crucible-att-1-0"]
    assert {"crucible.machine=m-1", "crucible.rank=att-1/0"} <= set(words)
    assert value_of(words, "--network") == "host" and value_of(words, "--pull") == "never"
    assert value_of(words, "--env-file") == "/a/container-0.env" and value_of(words, "--workdir") == "/a/code"
    # The entry point of the image is not used: the words after the image are the program.
    assert value_of(words, "--entrypoint") == ""
    assert words[-5:] == ["pytorch/pytorch:2.6.0", "python", "train.py", "--lr", "0.1; rm -rf /"]


@pytest.mark.parametrize(
    ("runtime", "is_rootless", "user", "expected"),
    [
        (DOCKER, False, None, ["--user", "1000:100"]),
        (DOCKER, True, None, ["--user", "0:0"]),
        (PODMAN, False, None, ["--user", "1000:100"]),
        (PODMAN, True, None, ["--userns", "keep-id", "--user", "1000:100"]),
        (DOCKER, False, "7:8", ["--user", "7:8"]),
    ],
)
def test_inside_is_whoever_can_use_the_agents_folders(
    runtime: str, is_rootless: bool, user: str | None, expected: list[str]
) -> None:
    words = run(runtime, is_rootless=is_rootless, user=user)
    first = words.index(expected[0])
    assert words[first : first + len(expected)] == expected


def test_gpus_are_handed_to_docker_as_one_request() -> None:
    request = value_of(run(DOCKER, devices=["2", "3"]), "--gpus")
    assert next(csv.reader([request])) == ["device=2,3"]
    assert "--gpus" not in run(DOCKER)


def test_gpus_are_handed_to_podman_by_name() -> None:
    words = run(PODMAN, devices=["0", "MIG-41b36404"])
    assert [words[at + 1] for at, word in enumerate(words) if word == "--device"] == [
        "nvidia.com/gpu=0",
        "nvidia.com/gpu=MIG-41b36404",
    ]
    assert "--device" not in run(PODMAN)


@pytest.mark.parametrize(
    ("devices", "visible"),
    [([], ""), (["2", "3"], "0,1"), (["GPU-8f1c", "MIG-41b3"], "GPU-8f1c,MIG-41b3")],
)
def test_inside_gpus_are_counted_from_zero_and_names_stay(devices: list[str], visible: str) -> None:
    assert container.visible_devices(devices) == visible


def test_limits() -> None:
    words = run(DOCKER, shm_gib=0.5, cpus=8, memory_gib=64.0)
    assert value_of(words, "--shm-size") == "536870912b"
    assert (value_of(words, "--cpus"), value_of(words, "--memory")) == ("8", "68719476736b")
    assert "--ipc" not in words
    assert value_of(run(DOCKER), "--ipc") == "host"


def test_a_mount_with_a_comma_or_a_quote_is_one_mount() -> None:
    mounts = [("bind", '/a,b "c"', "/data", False), ("volume", "pip-cache", "/cache", True)]
    words = run(PODMAN, mounts=mounts)
    found = [words[at + 1] for at, word in enumerate(words) if word == "--mount"]
    assert next(csv.reader([found[0]])) == ["type=bind", 'src=/a,b "c"', "dst=/data"]
    assert found[1] == "type=volume,src=pip-cache,dst=/cache,readonly"


def test_values_that_a_file_cannot_hold_are_passed_by_name_only() -> None:
    env = {"A": "plain", "CONFIG": json.dumps({"lr": 1}), "LINES": "a\nb", "LONG": "x" * 70000, "EMPTY": ""}
    text, passed = container.split_environment(env, {})
    assert text == "A=plain\nEMPTY=\n"
    assert passed == {name: env[name] for name in ("CONFIG", "LINES", "LONG")}
    words = run(DOCKER, passed=tuple(sorted(passed)))
    assert [words[at + 1] for at, word in enumerate(words) if word == "--env"] == ["CONFIG", "LINES", "LONG"]
    assert not any("plain" in word or "lr" in word for word in words)


@pytest.mark.parametrize("name", ["PATH", "LD_PRELOAD", "DOCKER_HOST", "CONTAINERS_CONF", "http_proxy"])
def test_a_variable_of_the_user_never_becomes_one_of_the_runtime(name: str) -> None:
    with pytest.raises(Unusable, match=name):
        container.split_environment({name: "two\nlines"}, {})


def test_a_secret_is_passed_by_name_only_however_plain_it_is() -> None:
    text, passed = container.split_environment({"A": "plain"}, {"HF_TOKEN": "hf_plain"})
    assert text == "A=plain\n" and passed == {"HF_TOKEN": "hf_plain"}
    assert "hf_plain" not in " ".join(run(PODMAN, passed=tuple(passed)))
    with pytest.raises(Unusable, match="deliver it as a file"):
        container.split_environment({}, {"DOCKER_AUTH_CONFIG": "x"})


def test_the_runtime_sees_only_what_it_needs_of_the_agents_environment() -> None:
    inherited = {"PATH": "/bin", "AWS_SECRET_ACCESS_KEY": "s", "DOCKER_HOST": "tcp://x", "CONTAINERS_CONF": "/c"}
    assert set(container.client_environment(inherited)) == {"PATH", "DOCKER_HOST", "CONTAINERS_CONF"}


@pytest.mark.parametrize(
    ("image", "full"),
    [
        ("busybox", "docker.io/library/busybox"),
        ("busybox:1.36", "docker.io/library/busybox:1.36"),
        ("pytorch/pytorch", "docker.io/pytorch/pytorch"),
        ("ghcr.io/a/b:1", "ghcr.io/a/b:1"),
        ("localhost/x", "localhost/x"),
        ("registry:5000/x", "registry:5000/x"),
    ],
)
def test_a_short_name_means_the_same_to_both(image: str, full: str) -> None:
    assert container.full_name(image) == full


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("Error: reading manifest 9 in docker.io/x: manifest unknown", "does not exist or needs a login"),
        ("Error response from daemon: pull access denied for x, repository does not exist", "does not exist or needs"),
        ("Error: unauthorized: authentication required", "does not exist or needs a login"),
        ("Error: writing blob: write /var/x: no space left on device", "too full for the image x"),
        ("Error: dial tcp: lookup nowhere: no such host", "could not be pulled"),
    ],
)
def test_a_failed_pull_says_what_a_person_can_do(line: str, words: str) -> None:
    problem = container.pull_problem("x", ["Trying to pull x...", line])
    assert words in problem and problem.endswith(line)


def test_credentials_are_a_file_for_podman_and_a_folder_for_docker() -> None:
    assert container.pull(PODMAN, "x", "/auth.json") == ["podman", "pull", "--authfile", "/auth.json", "x"]
    assert container.pull(DOCKER, "x", "/auth") == ["docker", "--config", "/auth", "pull", "x"]
    assert container.pull(DOCKER, "x", None) == ["docker", "pull", "x"]


@pytest.mark.parametrize(
    ("code", "outcome"), [(0, (0, None)), (3, (3, None)), (137, (None, 9)), (143, (None, 15)), (255, (255, None))]
)
def test_an_exit_code_above_128_is_a_signal(code: int, outcome: tuple[int | None, int | None]) -> None:
    assert container.outcome(code) == outcome


def test_a_refusal_of_the_runtime_is_told_from_an_exit_code_of_the_program() -> None:
    assert container.refusal(125, ["Error: no such device nvidia.com/gpu=0"]) == (
        "the container could not start: no such device nvidia.com/gpu=0"
    )
    assert container.refusal(127, ["docker: Error response from daemon: exec: no sh", "See 'docker run --help'."])
    assert container.refusal(125, ["git bisect: skipped"]) is None
    assert container.refusal(1, ["Error: mine"]) is None


def test_an_absolute_path_needs_no_shell_in_the_image() -> None:
    assert not container.is_entered_by_shell(["/usr/bin/python3", "train.py"], has_setup=False)
    assert container.is_entered_by_shell(["/usr/bin/python3", "train.py"], has_setup=True)
    assert container.is_entered_by_shell(["python", "train.py"], has_setup=False)
