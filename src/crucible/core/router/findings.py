"""What was read from somebody's code: each inference with its line, its text and how sure it is. Values only."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby, islice

Value = str | int | float | bool

# Of a line that is shown as evidence.
EVIDENCE_LENGTH = 120
# Findings of one kind that are told; a file that says it a thousand times is told as often as one that says it twenty.
TOLD_OF_EACH = 20


class Confidence(StrEnum):
    HIGH = "high"  # the code says so
    MEDIUM = "medium"  # the code says so unless something else changes it: a default, a name, a usual meaning
    LOW = "low"  # a hint

    @property
    def rank(self) -> int:
        """The least is the surest."""
        return _RANKS[self]


_RANKS = {Confidence.HIGH: 0, Confidence.MEDIUM: 1, Confidence.LOW: 2}


class What(StrEnum):
    """What a finding is about, in the order in which they are told."""

    FRAMEWORK = "framework"
    DISTRIBUTED = "distributed"
    JOB_KIND = "job_kind"
    MODEL = "model"
    MODEL_CLASS = "model_class"
    PARAMETERS = "parameters"
    METHOD = "method"
    BATCH_SIZE = "batch_size"
    SEQUENCE_LENGTH = "sequence_length"
    PRECISION = "precision"
    OPTIMIZER = "optimizer"
    EPOCHS = "epochs"
    STEPS = "steps"
    ACCUMULATION = "accumulation"  # batches per step
    TRIALS = "trials"
    CHECKPOINTING = "checkpointing"
    CHECKPOINT_EVERY = "checkpoint_every"
    RESUME = "resume"
    DATASET = "dataset"
    DATASET_SIZE_GB = "dataset_size_gb"
    SAMPLES = "samples"  # of one epoch
    OUTPUT = "output"
    GPU = "gpu"
    GPUS = "gpus"
    INTERNET = "internet"
    PRIVACY = "privacy"


@dataclass(frozen=True, slots=True)
class Site:
    """Where something stands. `file` names the cell too, if it is a notebook."""

    file: str
    line: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    what: What
    value: Value
    file: str
    line: int
    evidence: str
    confidence: Confidence
    why: str  # how the line led to the value


def found(what: What, value: Value, site: Site, confidence: Confidence, why: str) -> Finding:
    return Finding(
        what=what,
        value=value,
        file=site.file,
        line=site.line,
        evidence=site.text,
        confidence=confidence,
        why=why,
    )


def ordered(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """By what they are about, the surest first, each value of a line told once. What is equally sure keeps its order:
    whoever looks for it puts the best first. Of each kind only so many are told."""
    kept: dict[tuple[object, ...], Finding] = {}
    for finding in findings:
        key = (finding.what, finding.value, finding.file, finding.line)
        known = kept.get(key)
        if known is None or finding.confidence.rank < known.confidence.rank:
            kept[key] = finding
    best = sorted(kept.values(), key=lambda f: (_ORDER[f.what], f.confidence.rank))
    return tuple(one for _, kind in groupby(best, key=lambda f: f.what) for one in islice(kind, TOLD_OF_EACH))


def winners(findings: Iterable[Finding]) -> Mapping[What, Finding]:
    """Where findings differ, the surest one counts."""
    best: dict[What, Finding] = {}
    for finding in ordered(findings):
        best.setdefault(finding.what, finding)
    return best


_ORDER = {what: index for index, what in enumerate(What)}
