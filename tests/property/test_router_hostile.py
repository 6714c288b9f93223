"""Whatever is sent to the router, it answers (C9): no text escapes it as an error, a loop, or a broken job file."""

import io
import keyword
import tokenize

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crucible import spec
from crucible.core.architectures import Architectures
from crucible.core.router.analysis import analyse
from crucible.core.router.blocks import split
from crucible.core.router.characteristics import profile
from crucible.core.router.preferences import Preferences
from crucible.core.router.skeleton import skeleton
from crucible.core.router.source import SourceFile

NOTHING = Architectures()
QUICK = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])

# Words of programs in any order: nearer to code than noise, and still mostly broken.
WORDS = st.sampled_from(
    [
        *keyword.kwlist,
        *"()[]{}:,.=+-*/@;\\'\"#\n\t",
        *("==", "**", "//", "->", ":=", "'''", '"""', "f'", 'b"', "0", "1", "1e9", "'1'"),
        *("torch", "nn", "Linear", "DataLoader", "batch_size=64", "epochs", "x", "self", ".cuda()", ".backward()"),
        "\n    ",
        "\n        ",
        "import torch\n",
        "class A(nn.Module):\n    def __init__(self):\n        ",
        "TrainingArguments(",
        "add_argument('--lr', default=",
    ]
)
CODE = st.one_of(
    st.text(max_size=400), st.lists(WORDS, max_size=80).map(" ".join), st.lists(WORDS, max_size=80).map("".join)
)
NAMES = st.one_of(
    st.sampled_from(["train.py", "a/b.py", "n.ipynb", "x.txt", "é.py", "a b.py", "#.py", ": .py", "-.py"]),
    st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=30).map(lambda name: name + ".py"),
)


@QUICK
@given(st.lists(st.tuples(NAMES, CODE), max_size=3, unique_by=lambda file: file[0]))
def test_any_text_has_an_answer_and_a_finding_names_its_line(files: list[tuple[str, str]]) -> None:
    found = analyse([SourceFile(name, text) for name, text in files], NOTHING)
    for finding in found.findings:
        assert finding.line >= 1
        assert "\n" not in finding.evidence and len(finding.evidence) <= 120


@QUICK
@given(NAMES, CODE, st.floats(0.01, 1000), st.integers(0, 4000))
def test_the_job_file_of_any_script_can_be_read(name: str, text: str, hours: float, gpus: int) -> None:
    wishes = Preferences(duration_hours=hours, gpus=gpus, max_cost_usd=12.5, checkpoint_frequency_minutes=5)
    found = analyse([SourceFile(name, text)], NOTHING)
    made = skeleton(found, profile(found, wishes, NOTHING), wishes, NOTHING)
    loaded = spec.load(made)
    assert loaded.spec.resources.gpus == gpus


@QUICK
@given(CODE)
def test_blocks_are_the_whole_text_in_order(text: str) -> None:
    blocks = list(split(text))
    assert "".join(block.text for block in blocks) == text
    line = 1
    for block in blocks:
        assert block.line == line
        line += block.text.count("\n")


@QUICK
@given(st.lists(st.sampled_from(["x = 1\n", "def f():\n    return (\n1)\n", "s = '''\nif a:\n'''\n", "f(\n  1,\n)\n"])))
def test_a_sound_text_is_cut_into_sound_statements(parts: list[str]) -> None:
    for block in split("".join(parts)):
        compile(block.text, "block", "exec")
        list(tokenize.generate_tokens(io.StringIO(block.text).readline))


@QUICK
@given(st.binary(max_size=300))
def test_bytes_of_any_kind_are_text_in_the_end(raw: bytes) -> None:
    analyse([SourceFile("x.py", raw.decode("latin-1")), SourceFile("y.ipynb", raw.decode("latin-1"))], NOTHING)
