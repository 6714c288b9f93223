"""What is asked about a workflow, and what is known of its steps one by one. Values only."""

from dataclasses import dataclass
from datetime import datetime

import numpy as np

from crucible.core.offers import OfferTable
from crucible.core.plan import Question, Study
from crucible.core.proposal import Candidate
from crucible.model.spec import Constraints, Strategy


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowStep:
    """`needs` and `reads` are numbers of steps."""

    name: str
    question: Question
    needs: tuple[int, ...] = ()
    reads: tuple[int, ...] = ()  # of those, or before them: what they left
    leaves_gib: float | None = None  # None: nobody knows, and carrying it costs nothing
    given: Candidate | None = None  # planned already: a step of many tasks
    home: str | None = None  # "provider/region" of what it left: it has ended


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    steps: tuple[FlowStep, ...]
    limits: Constraints  # of all steps together
    objective: Strategy
    now: datetime


@dataclass(frozen=True, slots=True)
class Studied:
    """What is known of each step by itself; None where there is nothing to choose. Equal steps are studied once."""

    flow: Flow
    table: OfferTable
    studies: tuple[Study | None, ...]

    @property
    def is_timed(self) -> bool:
        """Whether the hours of all steps are known; else neither budget nor deadline can be checked."""
        return all(is_timed(step, found) for step, found in zip(self.flow.steps, self.studies, strict=True))


def is_timed(step: FlowStep, found: Study | None) -> bool:
    if step.given is not None:
        return step.given.expected_h is not None
    return found is None or not np.isnan(found.hours.hours).all()
