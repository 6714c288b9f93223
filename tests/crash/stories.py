"""Jobs with short lives: what each does, what somebody asks of it meanwhile, and what must become of it."""

import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

WORKER = Path(__file__).with_name("worker.py")

SPEC = """\
job:
  name: {name}
  command: {command}
  resources: {{gpus: {gpus}, max_gpus_per_node: 1}}
  retry: {{limit: {limit}, delay: {delay}}}
  constraints: {{providers: [local]}}
"""


@dataclass(frozen=True)
class Story:
    name: str
    verbs: tuple[str, ...]
    ends: str = "completed"
    gpus: int = 0
    limit: int = 0
    delay: str = "0s"
    # How many attempts really start. Nothing but the user's code, a cancel or a hold ends one here.
    starts: tuple[int, ...] = (1,)
    deed: str | None = None  # "cancel" or "hold": what somebody asks of it
    deed_after_s: float = 0.0
    deed_when: str | None = None  # the status to wait for before
    deed_word: str | None = None  # what its program must have told the witness before
    form: str = SPEC
    machines: int | None = None  # None: as many as GPUs
    # Its machines may be taken away or die at any time: attempts come and go, and only what its program does counts.
    is_hunted: bool = False

    @property
    def ranks(self) -> int:
        return max(1, self.gpus if self.machines is None else self.machines)

    def spec(self, folder: Path) -> str:
        command = [sys.executable, "-I", str(WORKER), str(folder), self.name, *self.verbs]
        words = "[" + ", ".join(f"'{word}'" for word in command) + "]"
        return self.form.format(name=self.name, command=words, gpus=self.gpus, limit=self.limit, delay=self.delay)

    def lines(self, attempt: int, rank: int) -> list[str]:
        """What a run that came to its end has printed."""
        counts = [int(verb.partition(":")[2]) for verb in self.verbs if verb.startswith("lines:")]
        return [f"{self.name} {attempt} {rank} line {i}" for count in counts for i in range(count)]

    def checkpoints(self) -> list[int]:
        return [step for verb in self.verbs if verb.startswith("save:") for step in range(1, int(verb[5:]) + 1)]


Maker = Callable[[str, random.Random], Story]


def quick(name: str, chance: random.Random) -> Story:
    return Story(name, ("lines:1",))


def talkative(name: str, chance: random.Random) -> Story:
    return Story(name, (f"lines:{chance.randrange(50, 400)}",), gpus=chance.choice([0, 1]))


def failing(name: str, chance: random.Random) -> Story:
    return Story(name, ("lines:3", "fail-below:99"), ends="failed")


def failing_twice(name: str, chance: random.Random) -> Story:
    return Story(name, ("lines:3", "fail-below:99"), ends="failed", limit=1, starts=(2,), gpus=1)


def recovering(name: str, chance: random.Random) -> Story:
    return Story(name, ("lines:5", "fail-below:1", "lines:5"), limit=1, starts=(2,))


def gang(name: str, chance: random.Random) -> Story:
    return Story(name, (f"lines:{chance.randrange(10, 100)}", "sleep:0.2"), gpus=2)


def saving(name: str, chance: random.Random) -> Story:
    return Story(name, ("lines:2", "save:3", "lines:2"))


def cancelled_at_once(name: str, chance: random.Random) -> Story:
    after = chance.uniform(0, 0.5)
    return Story(name, ("until-told",), ends="cancelled", gpus=1, starts=(0, 1), deed="cancel", deed_after_s=after)


def cancelled_running(name: str, chance: random.Random) -> Story:
    """The cancel may come when the process is there and has not said a word."""
    return Story(name, ("until-told",), ends="cancelled", starts=(0, 1), deed="cancel", deed_when="running")


def stubborn(name: str, chance: random.Random) -> Story:
    """Takes the whole grace of thirty seconds."""
    verbs = ("deaf", "orphans", "until-told")
    return Story(name, verbs, ends="cancelled", deed="cancel", deed_word="orphan")


def held(name: str, chance: random.Random) -> Story:
    after = chance.uniform(0, 1.0)
    return Story(name, ("until-told", "lines:5"), starts=(1, 2), deed="hold", deed_after_s=after)


def blocked(name: str, chance: random.Random) -> Story:
    """Wants every slot while somebody has one."""
    return Story(name, ("lines:1",), ends="cancelled", gpus=8, starts=(0,), deed="cancel", deed_after_s=0.3)


def occupying(name: str, chance: random.Random) -> Story:
    """Holds one slot until it is told to end."""
    return Story(name, ("until-told", "lines:3"), gpus=1)


def training(name: str, chance: random.Random) -> Story:
    """Goes on, checkpoint by checkpoint, until it is told to end."""
    return Story(name, (f"train:{chance.uniform(0.01, 0.05):.3f}",))


def learning(name: str, chance: random.Random) -> Story:
    """Fails a few times, goes on from its checkpoint each time, and saves so often that the oldest have to go."""
    return Story(name, ("train:0.02:40", "fail-below:3", "train:0.02:200"), limit=3, starts=(1, 2, 3, 4))


# Each as likely as it stands here; `stubborn` is asked for by name.
MENU: tuple[Maker, ...] = (
    quick,
    talkative,
    talkative,
    failing,
    failing_twice,
    recovering,
    gang,
    gang,
    saving,
    saving,
    cancelled_at_once,
    cancelled_running,
    held,
)
