"""What must hold between fields. Each rule looks only at fields that could be read, so that one slip is told once."""

from dataclasses import replace
from datetime import datetime

from crucible.model.spec import JobSpec
from crucible.spec.mode import MODE_HINT, mode_conflict, select_mode
from crucible.spec.problems import Reading

# The first says nothing without the second.
_HALVES = (
    ("job.resources.estimated_on", "job.resources.estimated_hours"),
    ("job.workload.epochs", "job.workload.samples"),
)
_GPU_FIELDS = ("gpu_type", "gpu_memory", "max_gpus_per_node")


def apply(spec: JobSpec, reading: Reading, now: datetime | None) -> JobSpec:
    """`spec` with its mode chosen; what contradicts itself is told."""
    _check_multi_node(spec, reading)
    _check_one_way_to_start(reading)
    _warn_of_no_gpus(spec, reading)
    _warn_of_half_a_fact(reading)
    if now is not None:
        _warn_of_past_deadline(spec, reading, now)
    return _with_mode(spec, reading)


def _check_multi_node(spec: JobSpec, reading: Reading) -> None:
    wanted, gpus = "job.resources.requires_multi_node", "job.resources.gpus"
    if spec.resources.requires_multi_node and spec.resources.gpus < 2 and reading.is_sound(wanted, gpus):
        at = reading.given[wanted]
        reading.add(at, wanted, f"takes at least 2 GPUs, the job has {spec.resources.gpus}", "raise gpus or remove it")


def _check_one_way_to_start(reading: Reading) -> None:
    given = reading.given
    if "job.command" not in given:
        return
    if "job.entrypoint" in given:
        at = max(given["job.command"], given["job.entrypoint"])
        reading.add(at, "job.command", "entrypoint and command are both given", "keep one of them")
    elif "job.args" in given:
        reading.add(given["job.args"], "job.args", "args go with an entrypoint", "put them into the command")


def _warn_of_no_gpus(spec: JobSpec, reading: Reading) -> None:
    if spec.resources.gpus > 0 or not reading.is_sound("job.resources", "job.resources.gpus"):
        return
    for name in _GPU_FIELDS:
        path = f"job.resources.{name}"
        if path in reading.given:
            reading.warn(reading.given[path], path, "has no effect, the job asks for no GPUs", "set gpus")


def _warn_of_half_a_fact(reading: Reading) -> None:
    for path, other in _HALVES:
        if path in reading.given and other not in reading.given and reading.is_sound(path):
            reading.warn(reading.given[path], path, "has no effect alone", f"give {other.removeprefix('job.')} too")


def _warn_of_past_deadline(spec: JobSpec, reading: Reading, now: datetime) -> None:
    deadline = spec.constraints.deadline
    if deadline is not None and deadline <= now:
        path = "job.constraints.deadline"
        when = deadline.isoformat(timespec="seconds").replace("+00:00", "Z")
        reading.warn(reading.given[path], path, f"{when} has passed", "a submitted job would be refused")


def _with_mode(spec: JobSpec, reading: Reading) -> JobSpec:
    path = "job.execution.mode"
    if not reading.is_sound("job.type", "job.framework", "job.execution", path):
        return spec
    explicit = spec.execution.mode if path in reading.given else None
    conflict = mode_conflict(spec.type, spec.framework, explicit)
    if conflict:
        reading.add(reading.given[path], path, conflict, MODE_HINT)
        return spec
    mode = select_mode(spec.type, spec.framework, explicit)
    return replace(spec, execution=replace(spec.execution, mode=mode))
