"""Spot prices of the Lab: the recorded ones end where the world begins, made-up ones start where the catalog is."""

import gzip
from pathlib import Path

from crucible.catalog.spot_history import FILE
from crucible.lab.history import FARTHEST, RECORDED_S, History, read
from crucible.world.facts import PricePoint

START = 1_800_000_000
HEADER = "ts_unix,instance_type,region,az_id,spot_price,ondemand_price"
END = 1_787_000_000


def recorded(folder: Path, *rows: str) -> Path:
    path = folder / FILE
    path.parent.mkdir(parents=True)
    path.write_bytes(gzip.compress("\n".join([HEADER, *rows]).encode()))
    return folder


def in_force(line: tuple[PricePoint, ...], at: float) -> int:
    return [point.microusd_per_hour for point in line if point.at <= at][-1]


def a_record(folder: Path) -> Path:
    return recorded(
        folder,
        f"{END - RECORDED_S - 1},g5.xlarge,us-east-1,use1-az1,9.0,1.0",
        f"{END - 7200},g5.xlarge,us-east-1,use1-az1,0.4,1.0",
        f"{END - 7200},g5.xlarge,eu-west-1,euw1-az1,0.7,1.0",
        f"{END - 5400},g5.xlarge,us-east-1,use1-az1,0.4,1.0",
        f"{END - 3600},g5.xlarge,us-east-1,use1-az1,0.5,1.0",
        f"{END - 1800},g5.xlarge,us-east-1,use1-az1,,1.0",
        f"{END},g6.xlarge,us-east-1,use1-az2,0.3,1.0",
    )


def test_the_record_ends_where_the_world_begins(tmp_path: Path) -> None:
    history = History(START, 0, read(a_record(tmp_path), ["us-east-1"]))
    line = history.line("use1-az1", "g5.xlarge", 1)
    assert [PricePoint(START - 7200, 400_000), PricePoint(START - 3600, 500_000)] == list(line[1:3])
    assert in_force(line, START) == 500_000
    assert in_force(line, START - 80_000) == 400_000, "the first price that is known holds before"


def test_the_record_is_played_again(tmp_path: Path) -> None:
    line = History(START, 0, read(a_record(tmp_path), ["us-east-1"])).line("use1-az1", "g5.xlarge", 1)
    again = START + RECORDED_S
    assert (in_force(line, again - 7200), in_force(line, again - 3600)) == (400_000, 500_000)
    assert [point.at for point in line] == sorted(point.at for point in line)


def test_other_regions_and_old_prices_are_not_read(tmp_path: Path) -> None:
    found = read(a_record(tmp_path), ["us-east-1"])
    assert found is not None
    assert set(found.pools) == {("use1-az1", "g5.xlarge"), ("use1-az2", "g6.xlarge")}
    assert 9_000_000 not in [price for samples in found.pools.values() for _, price in samples]


def test_without_a_record_prices_wander_around_the_catalogs(tmp_path: Path) -> None:
    assert read(tmp_path, ["us-east-1"]) is None
    assert read(None, ["us-east-1"]) is None
    line = History(START, 0, None).line("use1-az1", "g5.xlarge", 600_000)
    assert in_force(line, START) == 600_000
    assert len({point.microusd_per_hour for point in line}) > 10
    assert all(600_000 / FARTHEST - 1 <= point.microusd_per_hour <= 600_000 * FARTHEST + 1 for point in line)
    assert [point.at for point in line] == sorted(point.at for point in line)
    assert line[0].at < START - 20 * 86_400
    assert line[-1].at > START + 50 * 86_400


def test_the_same_seed_gives_the_same_prices_and_another_others() -> None:
    line = History(START, 7, None).line("use1-az1", "g5.xlarge", 600_000)
    assert line == History(START, 7, None).line("use1-az1", "g5.xlarge", 600_000)
    assert line != History(START, 8, None).line("use1-az1", "g5.xlarge", 600_000)
    assert line != History(START, 7, None).line("use1-az2", "g5.xlarge", 600_000)
