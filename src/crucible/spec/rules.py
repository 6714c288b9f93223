"""What must hold between fields. Each rule looks only at fields that could be read, so that one slip is told once."""

from dataclasses import replace
from datetime import datetime

from crucible.model.spec import ELASTIC, Framework, JobSpec
from crucible.spec import many_rules, secrets
from crucible.spec.credentials import is_credential
from crucible.spec.mode import MODE_HINT, mode_conflict, select_mode
from crucible.spec.problems import Reading

# The first says nothing without the second.
_HALVES = (
    ("job.resources.estimated_on", "job.resources.estimated_hours"),
    ("job.workload.epochs", "job.workload.samples"),
)
_GPU_FIELDS = ("gpu_type", "gpu_memory", "max_gpus_per_node")


def apply(spec: JobSpec, reading: Reading, now: datetime | None) -> JobSpec:
    """`spec` with its type and mode chosen; what contradicts itself is told."""
    _check_multi_node(spec, reading)
    _check_nodes(spec, reading)
    _check_one_process(spec, reading)
    _check_one_way_to_start(reading)
    _check_template(reading)
    _check_volumes(spec, reading)
    secrets.check(spec.secrets, set(spec.env), "job.secrets", reading)
    warn_of_credentials(spec, reading)
    _warn_of_no_image(spec, reading)
    _warn_of_no_gpus(spec, reading)
    _warn_of_half_a_fact(reading)
    spec = many_rules.apply(spec, reading)
    if now is not None:
        _warn_of_past_deadline(spec, reading, now)
    return _with_nodes(_with_mode(spec, reading), reading)


def _check_multi_node(spec: JobSpec, reading: Reading) -> None:
    wanted, gpus = "job.resources.requires_multi_node", "job.resources.gpus"
    if spec.resources.requires_multi_node and spec.resources.gpus < 2 and reading.is_sound(wanted, gpus):
        at = reading.given[wanted]
        reading.add(at, wanted, f"takes at least 2 GPUs, the job has {spec.resources.gpus}", "raise gpus or remove it")


def _check_nodes(spec: JobSpec, reading: Reading) -> None:
    need, run = spec.resources, spec.execution
    nodes, least, most = "job.resources.nodes", "job.execution.min_nodes", "job.execution.max_nodes"
    if nodes in reading.given and reading.is_sound(nodes, "job.resources.gpus") and 0 < need.gpus < (need.nodes or 1):
        reading.add(
            reading.given[nodes], nodes, f"{need.nodes} machines for {need.gpus} GPUs", "raise gpus or lower it"
        )
    if run.min_nodes and run.max_nodes and run.min_nodes > run.max_nodes and reading.is_sound(least, most):
        reading.add(reading.given[least], least, f"is more than max_nodes ({run.max_nodes})", "swap them")
    given = [path for path in (least, most) if path in reading.given]
    if given and spec.framework not in ELASTIC and reading.is_sound("job.framework", *given):
        names = " or ".join(sorted(ELASTIC))
        hint = f"use framework {names}, or resources.nodes for a fixed number"
        reading.add(reading.given[given[0]], given[0], f"{spec.framework} cannot change its size while it runs", hint)


def _check_one_process(spec: JobSpec, reading: Reading) -> None:
    path, processes = "job.execution.processes_per_node", spec.execution.processes_per_node
    is_multiworker = spec.framework is Framework.TENSORFLOW_MULTIWORKER
    if is_multiworker and processes is not None and processes > 1 and reading.is_sound("job.framework", path):
        words = f"{spec.framework} runs one process on each machine, which uses all of its GPUs"
        reading.add(reading.given[path], path, words, "remove it, or use more machines: resources.nodes")


def _check_one_way_to_start(reading: Reading) -> None:
    given = reading.given
    if "job.command" not in given:
        return
    if "job.entrypoint" in given:
        at = max(given["job.command"], given["job.entrypoint"])
        reading.add(at, "job.command", "entrypoint and command are both given", "keep one of them")
    elif "job.args" in given:
        reading.add(given["job.args"], "job.args", "args go with an entrypoint", "put them into the command")


def _check_template(reading: Reading) -> None:
    path = "job.with"
    if path in reading.given and "job.template" not in reading.given:
        reading.add(reading.given[path], path, "has no effect without a template", "set template, or remove it")


def _check_volumes(spec: JobSpec, reading: Reading) -> None:
    """A plain process sees the machine's folders where they are; only a container can have them elsewhere."""
    path = "job.volumes"
    if path not in reading.given or spec.image is not None or not reading.is_sound(path, "job.image"):
        return
    for inside, source in spec.volumes.items():
        if source != inside and "://" not in source:
            hint = f"give an image, or the folder's own path: {{{source}: {source}}}" if source[0] == "/" else ""
            said = f"{inside}: a plain process cannot have {source} at another path"
            reading.add(reading.given[path], path, said, hint or "a named volume takes a container: give an image")


def warn_of_credentials(spec: JobSpec, reading: Reading) -> None:
    path = "job.env"
    if path not in reading.given or not reading.is_sound(path):
        return
    for name, value in spec.env.items():
        if is_credential(name, value):
            said = f"{name} looks like a credential, and all who may see the job will see it"
            reading.warn(reading.given[path], path, f"{said}: `crucible secret set {name}`, and name it under secrets")


def _warn_of_no_image(spec: JobSpec, reading: Reading) -> None:
    path = "job.container"
    if path in reading.given and spec.image is None and reading.is_sound(path, "job.image"):
        reading.warn(reading.given[path], path, "has no effect, the job runs as a plain process", "set image")


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


def _with_nodes(spec: JobSpec, reading: Reading) -> JobSpec:
    """An elastic job that counts no GPUs begins with all the machines that it may have."""
    most = spec.execution.max_nodes or spec.execution.min_nodes
    if most is None or spec.resources.gpus or spec.resources.nodes or not reading.is_sound("job.execution"):
        return spec
    return replace(spec, resources=replace(spec.resources, nodes=most))


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
