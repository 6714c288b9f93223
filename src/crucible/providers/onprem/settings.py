"""What an operator may choose about own hosts. All of it has a default; the hosts themselves are in the database."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import NoReturn

from crucible.model.errors import InvalidRequest
from crucible.ssh.login import SshFiles

PREFIX = "CRUCIBLE_ONPREM_"

# Shorter, a restart of the server would end jobs; longer, a job that lost a host waits for a day.
LEAST_FENCE_S, MOST_FENCE_S = 10, 86_400
LEAST_BOOT_S, MOST_BOOT_S = 5, 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class OnpremSettings:
    # An agent that hears no server for so long ends its ranks: then the work may be started elsewhere.
    fence: timedelta = timedelta(minutes=5)
    boot_limit: timedelta = timedelta(seconds=60)  # from the purchase until the agent must have reported
    answer_limit: timedelta = timedelta(seconds=5)  # a host that is slower to list its machines is left out this time
    recheck_every: timedelta = timedelta(minutes=10)  # what hosts have; whether those in quarantine are well again
    stop_grace: timedelta = timedelta(seconds=15)  # between SIGTERM and SIGKILL of an agent
    files: SshFiles = field(default_factory=SshFiles.of_user)

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> "OnpremSettings":
        """Raises InvalidRequest for a word that cannot be meant."""
        usual = SshFiles.of_user()
        return cls(
            fence=seconds("FENCE_S", environ, 300, LEAST_FENCE_S, MOST_FENCE_S),
            boot_limit=seconds("BOOT_LIMIT_S", environ, 60, LEAST_BOOT_S, MOST_BOOT_S),
            answer_limit=seconds("ANSWER_LIMIT_S", environ, 5, 1, 50),
            recheck_every=seconds("RECHECK_S", environ, 600, 10, 86_400),
            stop_grace=seconds("STOP_GRACE_S", environ, 15, 1, 600),
            files=SshFiles(
                known_hosts=path("KNOWN_HOSTS", environ, usual.known_hosts),
                config=path("SSH_CONFIG", environ, usual.config),
            ),
        )


def seconds(name: str, environ: Mapping[str, str], default: int, least: int, most: int) -> timedelta:
    word = environ.get(PREFIX + name, "").strip() or str(default)
    if not word.isdecimal() or not least <= int(word) <= most:
        refuse(name, word, f"a whole number from {least} to {most}")
    return timedelta(seconds=int(word))


def path(name: str, environ: Mapping[str, str], default: Path) -> Path:
    word = environ.get(PREFIX + name, "").strip()
    return Path(word).expanduser() if word else default


def refuse(name: str, word: str, wanted: str) -> NoReturn:
    raise InvalidRequest(f"{PREFIX}{name}: {word!r} is not {wanted}")
