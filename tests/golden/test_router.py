"""What the router reads from scripts (C9): every finding with its line, and the characteristics they fold into. To
write the files anew after a change, run with CRUCIBLE_REWRITE_GOLDEN=1 and review the diff."""

import os
from dataclasses import asdict
from pathlib import Path

import pytest

from crucible import spec
from crucible.catalog.benchmarks import architectures
from crucible.core.router.analysis import Analysis, analyse
from crucible.core.router.characteristics import Profile, profile
from crucible.core.router.findings import Finding, winners
from crucible.core.router.preferences import Preferences
from crucible.core.router.skeleton import skeleton
from crucible.core.router.source import SourceFile

HERE = Path(__file__).parent / "router"
# A broken script and a notebook are kept under another ending, so that tools leave them alone.
SCRIPTS = sorted([*HERE.glob("*.py"), *HERE.glob("*.txt")])
FOLDER = HERE / "folder"
FIVE_MB = 5_000_000


def finding_line(finding: Finding, is_counted: bool) -> str:
    mark = "*" if is_counted else " "
    where = f"{finding.file}:{finding.line}"
    return f"{mark} {finding.what:<18} {finding.value!s:<36} {finding.confidence:<7} {where:<26} {finding.why}"


def told(analysis: Analysis, known: Profile, job_file: str) -> str:
    counted = {id(finding) for finding in winners(analysis.findings).values()}
    lines = [f"read: {', '.join(analysis.files)}", *(f"note: {note}" for note in analysis.notes), ""]
    lines += [finding_line(finding, id(finding) in counted) for finding in analysis.findings]
    facts = {name: value for name, value in asdict(known.characteristics).items() if value is not None}
    lines += ["", *(f"{name}: {value}" for name, value in facts.items())]
    lines += ["", *(f"assumed: {one}" for one in known.assumptions), *(f"memory: {one}" for one in known.memory)]
    return "\n".join([*lines, "", job_file])


def described(*files: SourceFile, entry: str | None = None) -> str:
    analysis = analyse(files, architectures(), entry)
    known = profile(analysis, Preferences(), architectures())
    job_file = skeleton(analysis, known, Preferences(), architectures())
    spec.load(job_file)
    return told(analysis, known, job_file)


def check(name: str, text: str) -> None:
    path = HERE / f"{name}.expected"
    if os.environ.get("CRUCIBLE_REWRITE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text()


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name.partition(".")[0])
def test_a_script_is_read_as_expected(path: Path) -> None:
    name = path.name.removesuffix(".txt")
    check(path.name.partition(".")[0], described(SourceFile(name, path.read_text())))


def test_a_folder_is_read_from_the_file_that_is_started() -> None:
    names = sorted(path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.py"))
    check("folder", described(*(SourceFile(name, (FOLDER / name).read_text()) for name in names)))


def test_a_file_of_five_megabytes_is_read_around_its_data() -> None:
    check("five_megabytes", described(SourceFile("big.py", five_megabytes())))


def five_megabytes() -> str:
    """A script with a table of data in its middle: the code stands before and after it."""
    head = "import torch\nimport torch.nn as nn\n\nbatch_size = 48\n\nTABLE = [\n"
    tail = (
        "]\n\nmodel = nn.Linear(1024, 4096).cuda()\noptimizer = torch.optim.AdamW(model.parameters())\n"
        "for epoch in range(3):\n    model(torch.tensor(TABLE)).sum().backward()\n    torch.save(model, 'm.pt')\n"
    )
    row = "    [0.125, 0.25, 0.5, 1.0],\n"
    text = head + row * ((FIVE_MB - len(head) - len(tail)) // len(row)) + tail
    return text + "#" * (FIVE_MB - len(text))
