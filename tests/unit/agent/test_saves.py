"""What a rank says it saved: seen once, in order, and chosen so that ranks that save together choose alike."""

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from crucible.agent.cargo import choose, is_overtaken
from crucible.agent.saves import Save, Saves


def event(step: int, shards: int = 1) -> dict[str, Any]:
    said = {
        "type": "checkpoint",
        "t": 1,
        "step": step,
        "uri": "file:///x",
        "size_bytes": 1,
        "manifest_sha256": "a" * 64,
    }
    return {**said, "shard": 0, "shards": shards}


def write(path: Path, *events: dict[str, Any]) -> None:
    with path.open("a") as file:
        file.write("".join(json.dumps(each, separators=(",", ":")) + "\n" for each in events))


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def save(step: int, shards: int = 2) -> Save:
    return Save({name: value for name, value in event(step, shards).items() if name != "type"}, step)


def test_each_save_is_seen_once_among_everything_else(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    saves = Saves(str(path))
    assert saves.read() == []
    write(path, {"type": "metrics", "step": 1, "values": {"checkpoint": 1}}, event(1), {"type": "checkpoint_began"})
    append(path, '{"type":"checkpoint","step":2')
    assert [each.step for each in saves.read()] == [1]
    append(path, "}\n")
    write(path, event(3), {"type": "checkpoint", "step": "x"}, event(4))
    assert [each.step for each in saves.read()] == [3, 4]
    assert saves.read() == []


def test_an_endless_line_hides_only_itself(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    write(path, event(1))
    append(path, '"checkpoint"' * 500_000)
    saves = Saves(str(path))
    assert [each.step for each in saves.read()] == [1]
    append(path, "\n")
    write(path, event(2))
    assert [each.step for each in saves.read()] == [2]


def test_after_a_restart_only_what_is_not_settled_is_seen_again(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    write(path, event(1), event(2), event(3))
    saves = Saves(str(path))
    found = saves.read()
    saves.settle(found[1], [{"step": 2}])
    again = Saves(str(path))
    assert again.reports == [{"step": 2}]
    assert [each.step for each in again.read()] == [3]


def test_a_rank_on_its_own_carries_the_newest() -> None:
    assert choose([save(4, 1), save(5, 1), save(6, 1), save(7, 1)], is_hurried=False).step == 7


def test_at_the_end_the_newest_counts_for_all() -> None:
    assert choose([save(4), save(5)], is_hurried=True).step == 5


@given(st.integers(1, 6), st.integers(1, 6), st.integers(1, 50))
def test_ranks_that_fall_behind_differently_still_carry_some_steps_together(
    first: int, second: int, every: int
) -> None:
    """Each carries one checkpoint in the time that it saves so many."""
    carried = [set(simulated(pace, every, checkpoints=64)) for pace in (first, second)]
    assert len(carried[0] & carried[1]) >= 64 // 16


def simulated(pace: int, every: int, checkpoints: int) -> list[int]:
    waiting: list[Save] = []
    done = []
    for number in range(1, checkpoints + 1):
        waiting.append(save(number * every))
        if number % pace == 0:
            chosen = choose(waiting, is_hurried=False)
            done.append(chosen.step)
            waiting = [each for each in waiting if each.end > chosen.end]
    return done


def test_all_shards_of_one_rank_go_before_another_step_is_begun() -> None:
    """Two processes of one rank: what was begun is finished, or neither step would ever be whole."""

    def shard(step: int, number: int, end: int) -> Save:
        return Save({**event(step, 2), "shard": number}, end)

    waiting = [shard(10, 0, 1), shard(10, 1, 2), shard(20, 0, 3)]
    assert choose(waiting[:2], False).end == 1
    for is_hurried in (False, True):
        assert choose(waiting[1:], is_hurried, begun=10).end == 2
    assert choose(waiting, True).end == 3


def test_a_process_that_is_ahead_of_its_sibling_is_not_forgotten() -> None:
    ahead, behind, alone = save(20), Save(event(10, 2), 30), Save(event(10), 30)
    assert not is_overtaken(ahead, behind)
    assert is_overtaken(save(10), Save(event(20, 2), 30))
    assert is_overtaken(save(20, shards=1), alone)
