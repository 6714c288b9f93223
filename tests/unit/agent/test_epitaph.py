"""What a failed program said last: its own words, not its launcher's."""

from crucible.agent.epitaph import telling

OWN = ["step 12", "[rank1]: Traceback (most recent call last):", "[rank1]: RuntimeError: out of luck"]
TORCHRUN = [
    "E1117 05:23:40.672000 12232 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: 1)",
    "Traceback (most recent call last):",
    '  File "torch/distributed/run.py", line 1032, in <module>',
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
    "=====",
    "train.py FAILED",
    "  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html",
    "=====",
]


def test_what_torchrun_adds_is_left_out() -> None:
    assert telling(OWN + TORCHRUN) == OWN


def test_a_traceback_of_the_program_itself_stays() -> None:
    plain = ["Traceback (most recent call last):", "ValueError: no"]
    assert telling(plain) == plain
    assert telling(plain + TORCHRUN) == plain


def test_a_program_that_said_nothing_leaves_the_launchers_words() -> None:
    assert telling(TORCHRUN) == TORCHRUN
    assert telling([]) == []
