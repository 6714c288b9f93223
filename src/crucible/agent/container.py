"""A rank in a container: the words that docker or podman are called with, and what their words mean. Pure: nothing here
starts, reads or writes anything.

The code and the run folder lie at the same paths inside as outside, so that every path in the environment stays true.
Nothing of the user's environment is in a command line."""

from __future__ import annotations

import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

PODMAN, DOCKER = "podman", "docker"
RUNTIMES = (PODMAN, DOCKER)

# By these a person finds what is ours: podman ps --filter label=crucible.machine=ID
MACHINE_LABEL = "crucible.machine"
RANK_LABEL = "crucible.rank"

# Of the agent's own environment a container sees how to get out; paths of the machine would be wrong in it.
INHERITED = {
    *("http_proxy", "https_proxy", "no_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY"),
    "TZ",
}
# What the programs docker and podman themselves read: never given to them in another's name.
_CLIENT = {
    *("PATH", "HOME", "USER", "LOGNAME", "LANG", "TMPDIR", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME"),
    *("DBUS_SESSION_BUS_ADDRESS", "REGISTRY_AUTH_FILE", "SSL_CERT_FILE", "SSL_CERT_DIR", "STORAGE_DRIVER"),
    *INHERITED,
}
_CLIENT_PREFIXES = ("CONTAINER", "DOCKER_", "STORAGE_", "PODMAN_", "BUILDAH_", "LD_")

# A line of an environment file that every version of both reads in the same way: they differ in quotes, and podman
# reads no line above 64 KiB.
_LONGEST_LINE = 32768
_UNCLEAR = ("\n", "\r", "\t", '"', "'", "\\", "$", "`", "#")

# What the runtimes answer when the container did not run: their own error, not executable, not found.
_REFUSALS = (125, 126, 127)
# A program that a signal ended is answered with this much more than the signal's number.
_BY_SIGNAL = 128

_NO_ROOM = ("no space left on device", "disk quota exceeded")
_NO_IMAGE = (
    *("manifest unknown", "name unknown", "not found", "does not exist", "no such image", "unauthorized"),
    *("authentication required", "access denied", "access to the resource is denied", "invalid username/password"),
    "denied:",
)

# In the container, before the program: the setup lines; then the interpreter that the image has. As its first process
# the shell passes SIGTERM on, which a program that does not expect to be the first one would never get.
ENTER = """\
setup=$1
shift
stopped=
run() {
    "$@" &
    child=$!
    trap 'stopped=yes; kill -TERM "$child" 2>/dev/null' TERM
    wait "$child"
    status=$?
    while kill -0 "$child" 2>/dev/null; do
        wait "$child"
        status=$?
    done
}
if [ -n "$setup" ]; then
    run /bin/sh -eu "$setup"
    if [ "$status" != 0 ] || [ -n "$stopped" ]; then
        echo "$status" > "$CRUCIBLE_RUN_DIR/setup.failed"
        exit "$status"
    fi
fi
case $1 in
python) command -v python > /dev/null 2>&1 || { shift && set -- python3 "$@"; } ;;
python3) command -v python3 > /dev/null 2>&1 || { shift && set -- python "$@"; } ;;
esac
run "$@"
exit "$status"
"""


class Unusable(ValueError):
    """The container cannot be described; the text is for the user."""


def name_of(attempt_id: str, rank: int) -> str:
    return "crucible-%s-%d" % (attempt_id, rank)


def candidates(wanted: str) -> Tuple[str, ...]:
    """Which runtimes to try, the first that answers is taken."""
    return RUNTIMES if wanted == "auto" else (wanted,)


def no_runtime(wanted: str) -> str:
    if wanted == "auto":
        return "no container runtime: install podman or docker on the machine"
    return "no container runtime: %s does not answer on the machine; install it, or use container.runtime auto" % wanted


def question(runtime: str) -> List[str]:
    """Answered by a runtime that works, and for docker with what its daemon is."""
    if runtime == PODMAN:
        return ["podman", "info", "--format", "{{.Host.Security.Rootless}}"]
    return ["docker", "info", "--format", "{{json .SecurityOptions}}"]


def is_rootless(runtime: str, answer: str) -> bool:
    return answer.strip() == "true" if runtime == PODMAN else "rootless" in answer


# --- the image ------------------------------------------------------------------------------


def look_for(runtime: str, image: str) -> List[str]:
    return [runtime, "image", "inspect", "--format", "{{.Id}}", image]


def pull(runtime: str, image: str, auth: Optional[str]) -> List[str]:
    """`auth`: podman reads a file, docker a folder with a config.json."""
    if runtime == PODMAN:
        return ["podman", "pull", *(["--authfile", auth] if auth else []), image]
    return ["docker", *(["--config", auth] if auth else []), "pull", image]


def full_name(image: str) -> str:
    """A short name means the same to podman as to docker."""
    first = image.split("/")[0]
    if "/" not in image:
        return "docker.io/library/" + image
    return image if "." in first or ":" in first or first == "localhost" else "docker.io/" + image


def pull_problem(image: str, lines: Sequence[str]) -> str:
    """Why an image could not be had, for the user."""
    said = " ".join(lines).lower()
    last = lines[-1] if lines else "it did not say why"
    if any(words in said for words in _NO_ROOM):
        return "the disk of the machine is too full for the image %s: %s" % (image, last)
    if any(words in said for words in _NO_IMAGE):
        return "the image %s does not exist or needs a login: %s" % (image, last)
    return "the image %s could not be pulled: %s" % (image, last)


# --- the container --------------------------------------------------------------------------


def run(runtime: str, box: Dict[str, Any], argv: Sequence[str], env_file: str, passed: Sequence[str]) -> List[str]:
    """`passed` are variables that the caller has in its own environment: what no file can hold."""
    return [
        *(runtime, "run", "--rm", "--name", box["name"], "--pull", "never"),
        *("--network", "host", "--log-driver", "none", "--pids-limit", "-1", "--security-opt", "label=disable"),
        *("--label", "%s=%s" % (MACHINE_LABEL, box["machine_id"]), "--label", "%s=%s" % (RANK_LABEL, box["rank_id"])),
        *("--workdir", box["workdir"], "--env-file", env_file),
        *(word for name in passed for word in ("--env", name)),
        *(["--init"] if box["has_init"] else []),
        *_user(runtime, box),
        *_limits(box),
        *_gpus(runtime, box["devices"]),
        *(word for mount in box["mounts"] for word in ("--mount", _mount(*mount))),
        *("--entrypoint", "", box["image"]),
        *argv,
    ]


def remove(runtime: str, name: str) -> List[str]:
    """With everything in it; absent is success."""
    if runtime == PODMAN:
        return ["podman", "rm", "--force", "--ignore", "--volumes", "--time", "0", name]
    return ["docker", "rm", "--force", "--volumes", name]


def is_entered_by_shell(argv: Sequence[str], has_setup: bool) -> bool:
    """An absolute path is run as it stands: so images without a shell can be used too."""
    return has_setup or not argv[0].startswith("/") or argv[0] in ("/bin/sh", "/bin/bash")


def _user(runtime: str, box: Dict[str, Any]) -> List[str]:
    """Whoever the agent is, so that the folders can be used and what is written there is the agent's."""
    if runtime == PODMAN and box["is_rootless"]:
        return ["--userns", "keep-id", "--user", box["user"] or box["agent"]]
    # The daemon's root is the agent's user.
    own = "0:0" if box["is_rootless"] else box["agent"]
    return ["--user", box["user"] or own]


def _limits(box: Dict[str, Any]) -> List[str]:
    words = ["--ipc", "host"] if box["shm_gib"] is None else ["--shm-size", _bytes(box["shm_gib"])]
    if box["cpus"] is not None:
        words += ["--cpus", "%d" % box["cpus"]]
    if box["memory_gib"] is not None:
        words += ["--memory", _bytes(box["memory_gib"])]
    return words


def _bytes(gib: float) -> str:
    return "%db" % int(gib * (1 << 30))


def _gpus(runtime: str, devices: Sequence[str]) -> List[str]:
    if not devices:
        return []
    if runtime == PODMAN:
        return [word for device in devices for word in ("--device", "nvidia.com/gpu=" + device)]
    # Docker reads it as a line of CSV: the quotes keep the commas together.
    return ["--gpus", '"device=%s"' % ",".join(devices)]


def _mount(kind: str, source: str, target: str, is_read_only: bool) -> str:
    fields = ["type=" + kind, "src=" + source, "dst=" + target] + (["readonly"] if is_read_only else [])
    return ",".join('"%s"' % field.replace('"', '""') if set(field) & set(',"') else field for field in fields)


# --- the environment ------------------------------------------------------------------------


def visible_devices(devices: Sequence[str]) -> str:
    """Inside, GPUs are counted from 0; names of GPUs and of their parts stay what they are."""
    return ",".join(str(n) if device.isdigit() else device for n, device in enumerate(devices))


def split_environment(env: Mapping[str, str], secrets: Mapping[str, str]) -> Tuple[str, Dict[str, str]]:
    """The text of a file, and what has to be passed in the environment of docker or podman itself: what is secret, and
    what no file can hold. Raises Unusable."""
    for name in secrets:
        if _is_clients(name):
            raise Unusable("a secret cannot be the variable %s in a container: deliver it as a file" % name)
    passed = {name: value for name, value in env.items() if not _is_plain(name, value)}
    for name in passed:
        if _is_clients(name):
            raise Unusable("the variable %s cannot have quotes, line breaks or $ in a container" % name)
    passed.update(secrets)
    return "".join("%s=%s\n" % (name, value) for name, value in env.items() if name not in passed), passed


def client_environment(inherited: Mapping[str, str]) -> Dict[str, str]:
    """Of docker and podman themselves: where they find their settings."""
    return {name: value for name, value in inherited.items() if _is_clients(name)}


def _is_clients(name: str) -> bool:
    return name in _CLIENT or name.startswith(_CLIENT_PREFIXES)


def _is_plain(name: str, value: str) -> bool:
    if len(name) + len(value) > _LONGEST_LINE or value != value.strip():
        return False
    return not any(sign in value for sign in _UNCLEAR)


# --- the end --------------------------------------------------------------------------------


def outcome(exit_code: int) -> Tuple[Optional[int], Optional[int]]:
    """Exit code or signal, of the program inside."""
    number = exit_code - _BY_SIGNAL
    return (None, number) if number in set(signal.valid_signals()) else (exit_code, None)


def refusal(exit_code: Optional[int], last_errors: Sequence[str]) -> Optional[str]:
    """Why the container did not run, if that is what the exit code says: programs use these codes too."""
    if exit_code not in _REFUSALS or not last_errors:
        return None
    for line in reversed(last_errors):
        if line.startswith(("Error: ", "docker: ")):
            return "the container could not start: %s" % line.partition(": ")[2]
    return None
