"""Everything that can be read from the files of a job."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from crucible.core.architectures import Architectures
from crucible.core.router.code import Code, read
from crucible.core.router.detect import data, frameworks, hardware, models, numbers, training, work
from crucible.core.router.findings import Finding, ordered
from crucible.core.router.source import SourceFile


@dataclass(frozen=True, slots=True)
class Analysis:
    entry: str  # the file that is started; "" if there is none
    files: tuple[str, ...]  # that were read
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]  # what could not be read, and why


def analyse(files: Iterable[SourceFile], architectures: Architectures, entry: str | None = None) -> Analysis:
    code = read(files, architectures, entry)
    names = tuple(one.unit.name for one in code.facts)
    return Analysis(code.entry, names, ordered(_findings(code)), code.notes)


def _findings(code: Code) -> Iterator[Finding]:
    libraries = list(frameworks.frameworks(code))
    yield from libraries
    yield from hardware.gpu(code, libraries)
    for look in (
        frameworks.distributed,
        work.job_kind,
        work.trials,
        models.models,
        numbers.batch_size,
        numbers.sequence_length,
        numbers.epochs,
        numbers.steps,
        numbers.accumulation,
        training.precision,
        training.optimizer,
        training.method,
        training.checkpointing,
        training.checkpoint_every,
        training.resume,
        data.datasets,
        data.dataset_sizes,
        data.samples,
        data.outputs,
        data.internet,
        data.privacy,
        hardware.gpus,
    ):
        yield from look(code)
