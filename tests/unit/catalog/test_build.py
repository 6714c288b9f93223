"""The shipped files from a few lines of every source."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from crucible import catalog
from crucible.catalog import build
from crucible.catalog.build import Report
from crucible.catalog.catalog import Catalog
from crucible.catalog.commands import build_command
from crucible.model.catalog import Lane, Price
from crucible.model.errors import NotFound
from crucible.model.offer import Market

from .small_sources import own_facts, write_sources


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return write_sources(tmp_path_factory.mktemp("data")), own_facts(tmp_path_factory.mktemp("own") / "data")


@pytest.fixture(scope="module")
def report(folders: tuple[Path, Path]) -> Report:
    return build.build(*folders)


@pytest.fixture(scope="module")
def built(folders: tuple[Path, Path], report: Report) -> Catalog:
    return catalog.load(folders[1])


def prices_of(built: Catalog, kind: str) -> dict[tuple[str, Market], Price]:
    return {(price.region, price.market): price for price in built.prices() if price.instance_type == kind}


def test_a_second_build_changes_nothing(folders: tuple[Path, Path], report: Report) -> None:
    assert set(report.differing) == set(build.BUILT)
    again = build.make(*folders)
    assert again.differing == () and again.files == report.files


def test_a_file_that_was_changed_by_hand_is_found(folders: tuple[Path, Path], report: Report) -> None:
    path = folders[1] / "lanes.csv"
    path.write_text(path.read_text(encoding="utf-8") + "a:b,c:d,1,\n", encoding="utf-8")
    assert build.make(*folders).differing == ("lanes.csv",)
    path.write_bytes(report.files["lanes.csv"])


def test_what_is_left_out_is_counted_by_reason(report: Report) -> None:
    counts = {reason.split(":")[0]: count for reason, count in report.dropped.items()}
    assert counts == {
        "a share of a GPU": 1,
        "no GPU": 2,
        "retired by Azure in August 2023": 1,
        "listed without any price": 1,
        "listed in every zone of its regions, even where it is not sold": 1,
    }


def test_a_machine_with_a_wrong_number_of_gpus_is_corrected_and_its_false_spot_price_dropped(built: Catalog) -> None:
    kind = next(kind for kind in built.types() if kind.name == "Standard_ND96isr_H100_v5")
    assert (kind.gpu, kind.gpus, kind.gpu_memory_gib) == ("H100-SXM", 8, 80)
    assert set(prices_of(built, kind.name)) == {("eastus", Market.ON_DEMAND)}


def test_memory_is_that_of_the_gpu_not_of_the_list(built: Catalog) -> None:
    memory = {kind.name: kind.gpu_memory_gib for kind in built.types()}
    assert memory["p5e.48xlarge"] == 141 and memory["2x_B200_SECURE"] == 180


def test_a_make_sold_with_two_memories_under_one_name_is_two_types(built: Catalog) -> None:
    gpus = {kind.name: kind.gpu for kind in built.types() if kind.provider == "vast"}
    assert gpus == {
        "2x-A100_SXM4-32-65536-80GB": "A100-80GB",
        "2x-A100_SXM4-32-65536-40GB": "A100-40GB",
    }
    assert set(prices_of(built, "2x-A100_SXM4-32-65536-40GB")) == {("DE", Market.ON_DEMAND)}


def test_google_is_sold_with_its_host_and_by_its_gpu(built: Catalog) -> None:
    assert prices_of(built, "a2-highgpu-1g")["us-central1", Market.ON_DEMAND].price == 3_670_000
    assert {"n1-standard-8+T4x1", "n1-standard-8+V100x1"} <= {kind.name for kind in built.types()}


def test_a_later_check_replaces_the_list_price_and_leaves_spot_alone(built: Catalog) -> None:
    found = prices_of(built, "p4d.24xlarge")
    assert found["us-east-1", Market.ON_DEMAND].price == 20_500_000
    assert found["us-east-1", Market.ON_DEMAND].as_of.date().isoformat() == "2026-11-09"
    assert found["us-east-1", Market.SPOT].price == 10_130_000
    assert found["us-east-1", Market.SPOT].as_of.date().isoformat() == "2026-08-22"


def test_a_check_of_one_gpu_holds_for_any_number_of_them(built: Catalog) -> None:
    assert prices_of(built, "2x_B200_SECURE")["CA", Market.ON_DEMAND].price == 12_000_000


def test_a_check_older_than_the_list_is_not_used(built: Catalog) -> None:
    assert prices_of(built, "gpu_1x_h100_pcie")["us-east-1", Market.ON_DEMAND].price == 3_290_000


def test_shapes_without_prices_are_on_offer_at_an_unknown_price_in_every_region(built: Catalog) -> None:
    found = prices_of(built, "some.tencent")
    assert len(found) == 13 and all(price.price is None for price in found.values())


def test_lanes_are_measured_ones_then_the_providers_own(built: Catalog) -> None:
    lanes = {(lane.source, lane.target): lane for lane in built.lanes()}
    measured = Lane(source="aws:us-east-1", target="gcp:us-central1", usd_per_gb=0.09, gbps=4.5)
    assert lanes["aws:us-east-1", "gcp:us-central1"] == measured
    assert lanes["aws:us-east-1", "aws:us-east-2"].usd_per_gb == 0.01
    assert lanes["aws:us-east-2", "aws:us-east-1"].usd_per_gb == 0.02
    assert lanes["lambda:us-east-1", "lambda:us-east-1"].usd_per_gb == 0
    assert ("gcp:us-central1", "aws:us-east-1") not in lanes


def test_missing_sources_are_named(tmp_path: Path, folders: tuple[Path, Path]) -> None:
    with pytest.raises(NotFound, match=r"lacks catalog/offers\.csv.* --data or CRUCIBLE_DATA"):
        build.make(tmp_path, folders[1])


def test_the_command_asks_for_its_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(build_command, [], env={"CRUCIBLE_DATA": None})
    assert done.exit_code == 2 and "--data" in done.output
    done = CliRunner().invoke(build_command, ["--data", str(tmp_path), "--check"])
    assert done.exit_code == 1 and "lacks catalog/offers.csv" in done.output
