from pathlib import Path

import pytest

from crucible.providers.local.cgroups import parent_for_ranks


def world(folder: Path, membership: str, *, unified: bool = True) -> tuple[Path, Path]:
    root, own = folder / "cgroup", folder / "membership"
    (root / "user.slice").mkdir(parents=True)
    if unified:
        (root / "cgroup.controllers").write_text("cpu memory")
    own.write_text(membership)
    return root, own


def test_our_own_group_is_the_parent(tmp_path: Path) -> None:
    root, own = world(tmp_path, "0::/user.slice\n")
    assert parent_for_ranks(root, own) == root / "user.slice"


@pytest.mark.parametrize(
    ("membership", "unified"),
    [("9:memory:/x\n", True), ("0::/user.slice\n", False), ("", True), ("0::/not-here\n", True)],
)
def test_without_version_two_or_a_group_of_ours_there_is_none(tmp_path: Path, membership: str, unified: bool) -> None:
    root, own = world(tmp_path, membership, unified=unified)
    assert parent_for_ranks(root, own) is None


def test_where_nothing_tells_there_is_none(tmp_path: Path) -> None:
    assert parent_for_ranks(tmp_path, tmp_path / "missing") is None
