"""How a person leaves a shell that does not answer, and what `cp` takes for a job."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crucible.cli.commands.cp import Remote, remote
from crucible.cli.terminal import Left, WayOut


@given(st.binary(max_size=60).filter(lambda keys: b"~" not in keys), st.integers(0, 60))
def test_keys_pass_as_they_are(keys: bytes, cut: int) -> None:
    way = WayOut()
    assert way.passed(keys[:cut]) + way.passed(keys[cut:]) == keys


@pytest.mark.parametrize("keys", [b"~.", b"ls\r~.", b"a\n~."])
def test_a_tilde_and_a_dot_at_the_beginning_of_a_line_lead_out_even_key_by_key(keys: bytes) -> None:
    way = WayOut()
    with pytest.raises(Left):
        for key in keys:
            way.passed(bytes([key]))


@pytest.mark.parametrize(
    ("keys", "passed"),
    [(b"a~.", b"a~."), (b"~~.", b"~."), (b"~/x", b"~/x"), (b"cd ~\r", b"cd ~\r"), (b"~", b"")],
)
def test_anywhere_else_they_are_keys(keys: bytes, passed: bytes) -> None:
    assert WayOut().passed(keys) == passed


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("job:path", Remote("job", 0, "path")),
        ("job/12:/abs", Remote("job", 12, "/abs")),
        ("job:", Remote("job", 0, ".")),
        ("job:a:b", Remote("job", 0, "a:b")),
        ("./a:b", None),
        ("dir/a:b", None),
        ("/x:y", None),
        ("plain", None),
        (":x", None),
    ],
)
def test_a_job_and_a_file_are_told_apart(text: str, meant: Remote | None) -> None:
    assert remote(text) == meant
