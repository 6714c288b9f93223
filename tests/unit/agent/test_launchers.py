"""The programs that start frameworks: who is who in a gang, and who may talk to the driver."""

import socket
import threading
from collections.abc import Iterator

import pytest

from crucible.agent.launchers import BadOptions, Options, main
from crucible.agent.launchers.channel import Broken, Channel
from crucible.agent.launchers.horovod_gang import slot


def test_options_end_where_the_program_begins() -> None:
    options = Options(["--master=10.0.0.1:7000", "--slots=2,1", "--drive", "--", "python", "train.py", "--", "--x=1"])
    assert options.address("master") == ("10.0.0.1", 7000) and options.numbers("slots") == [2, 1]
    assert "drive" in options and "x" not in options
    assert options.program == ["python", "train.py", "--", "--x=1"]


@pytest.mark.parametrize(
    ("read", "words"),
    [
        (lambda options: options.number("min"), "--min=… is missing"),
        (lambda options: options.number("port"), "--port=x is no number"),
        (lambda options: options.address("port"), "must be HOST:PORT"),
        (lambda options: options.numbers("port"), "no list of numbers"),
    ],
)
def test_wrong_options_are_told(read, words: str) -> None:
    with pytest.raises(BadOptions, match=words):
        read(Options(["--port=x"]))


def test_an_unknown_launcher_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mpirun"]) == 2
    assert "--launch knows horovod" in capsys.readouterr().err


def test_horovod_ranks_count_through_the_nodes() -> None:
    slots = [2, 1, 2]
    found = [slot(slots, node, local) for node in range(3) for local in range(slots[node])]
    assert [one["HOROVOD_RANK"] for one in found] == ["0", "1", "2", "3", "4"]
    assert [one["HOROVOD_CROSS_RANK"] for one in found] == ["0", "0", "1", "2", "1"]
    assert [one["HOROVOD_CROSS_SIZE"] for one in found] == ["3", "2", "3", "3", "2"]
    assert {(one["WORLD_SIZE"], one["HOROVOD_SIZE"]) for one in found} == {("5", "5")}
    assert [one["LOCAL_RANK"] for one in found] == ["0", "1", "0", "0", "1"]


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    both = socket.socketpair()
    yield both
    for each in both:
        each.close()


def talk(pair: tuple[socket.socket, socket.socket], first: bytes, second: bytes) -> tuple[Channel, Channel]:
    made: list[Channel] = []
    thread = threading.Thread(target=lambda: made.append(Channel(pair[0], first, "driver", 5.0)))
    thread.start()
    runner = Channel(pair[1], second, "runner", 5.0)
    thread.join()
    return made[0], runner


def test_who_knows_the_secret_is_heard(pair: tuple[socket.socket, socket.socket]) -> None:
    driver, runner = talk(pair, b"secret", b"secret")
    runner.send({"node": 1})
    driver.send({"do": "start"})
    assert driver.receive() == {"node": 1} and runner.receive() == {"do": "start"}


def test_who_does_not_know_it_is_refused(pair: tuple[socket.socket, socket.socket]) -> None:
    driver, runner = talk(pair, b"secret", b"another")
    runner.send({"node": 1})
    with pytest.raises(Broken, match="does not know the secret"):
        driver.receive()


def test_a_line_that_is_said_again_is_refused(pair: tuple[socket.socket, socket.socket]) -> None:
    driver, runner = talk(pair, b"secret", b"secret")
    line = runner._seal("runner", 0, b"{}") + b" {}\n"
    pair[1].sendall(line + line)
    assert driver.receive() == {}
    with pytest.raises(Broken, match="does not know the secret"):
        driver.receive()


def test_who_hangs_up_or_falls_silent_is_noticed(pair: tuple[socket.socket, socket.socket]) -> None:
    driver, runner = talk(pair, b"secret", b"secret")
    runner.close()
    with pytest.raises(Broken, match="has closed the connection"):
        driver.receive()
