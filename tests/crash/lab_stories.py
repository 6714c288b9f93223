"""The same short lives on machines that are bought in the Lab: on demand or spot, one or two of them, each of which may
be taken away, die or never come up. None of that is the job's failure."""

import random
from collections.abc import Callable
from dataclasses import replace

from crash import stories
from crash.stories import Maker, Story

ONE = """\
job:
  name: {name}
  command: {command}
  resources: {{gpus: 1, gpu_type: [T4, A10G, L4]}}
  retry: {{limit: {limit}, delay: {delay}}}
  constraints: {{providers: [aws], strategy: cheapest, allow_spot: SPOT}}
"""
# Only such machines have a network that joins them.
TWO = ONE.replace("gpus: 1, gpu_type: [T4, A10G, L4]", "gpus: 16, gpu_type: A100-40GB")


def bought(make: Maker, machines: int = 1) -> Maker:
    """The story that `make` makes, on bought machines."""

    def made(name: str, chance: random.Random) -> Story:
        form = (ONE if machines == 1 else TWO).replace("SPOT", chance.choice(["true", "true", "false"]))
        return replace(make(name, chance), form=form, machines=machines, is_hunted=True)

    made.__name__ = f"bought-{make.__name__}" + ("-twice" if machines == 2 else "")
    return made


def patient(name: str, chance: random.Random) -> Story:
    """Long enough to be hunted down."""
    return Story(name, ("lines:3", f"sleep:{chance.uniform(1, 8):.1f}", "lines:3"))


def recovering(name: str, chance: random.Random) -> Story:
    """Its first attempt fails, if it has one: machines that never came up have used it up."""
    return replace(stories.recovering(name, chance), starts=(1, 2))


_BOUGHT: tuple[Callable[[str, random.Random], Story], ...] = (
    stories.quick,
    stories.talkative,
    stories.failing,
    stories.failing_twice,
    recovering,
    stories.saving,
    stories.learning,
    stories.learning,
    stories.cancelled_at_once,
    stories.cancelled_running,
    stories.held,
    patient,
    patient,
)

# Mixed with those on this computer.
LAB_MENU: tuple[Maker, ...] = (
    *(bought(make) for make in _BOUGHT),
    bought(stories.gang, machines=2),
    bought(patient, machines=2),
    stories.talkative,
    stories.gang,
    stories.saving,
    stories.cancelled_running,
)
