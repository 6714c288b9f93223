"""What a registered dataset is for a job, without storage."""

import hashlib
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from crucible.core import datasets
from crucible.core.offers import OfferTable, make_table
from crucible.core.rules import Home, home_of, place_rules
from crucible.model import dataset_tree
from crucible.model.catalog import InstanceType, Price
from crucible.model.dataset import Dataset, Pin, named_in, pin_of
from crucible.model.dataset_tree import OBJECT_BYTES, SMALL_BYTES, Entry, leads_inside
from crucible.model.errors import InvalidRequest
from crucible.model.ids import Digest, UserId
from crucible.model.launch import DatasetWork
from crucible.model.offer import Market
from crucible.model.spec import Data, JobSpec
from crucible.model.units import MicroUsd
from crucible.spec import load

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SHA = "ab" * 32
PIN = Pin(name="imagenet", digest=Digest(SHA), size_bytes=3 << 30, home="aws/us-east-1")


def a_dataset(**fields: Any) -> Dataset:
    given = Dataset(
        name="imagenet",
        digest=Digest(SHA),
        uri="s3://bucket/datasets",
        region=None,
        size_bytes=10,
        files=1,
        user_id=UserId("ann"),
        created_at=NOW,
    )
    return replace(given, **fields)


def spec_with(data: str) -> JobSpec:
    return load(f"job: {{command: [train], data: {data}}}").spec


# --- what a job was given -----------------------------------------------------------------------------------


def test_a_pin_survives_being_written_down() -> None:
    assert pin_of(PIN.uri) == PIN
    assert pin_of("dataset://imagenet") is None and pin_of("s3://bucket/x") is None and pin_of(None) is None


def test_a_spec_gets_size_and_home_from_its_dataset() -> None:
    spec = datasets.with_pin(spec_with("{dataset: dataset://imagenet}"), PIN.uri)
    assert spec.data == Data(dataset=f"dataset://imagenet@{SHA}", size_gib=3.0, region="aws/us-east-1")
    assert home_of(spec) == Home("aws", "us-east-1")
    assert datasets.work_of(spec) == DatasetWork(name="imagenet", digest=Digest(SHA))


def test_what_the_user_says_of_size_and_region_holds() -> None:
    spec = datasets.with_pin(spec_with("{dataset: dataset://imagenet, size: 5GB, region: eu-west-1}"), PIN.uri)
    assert spec.data.size_gib == pytest.approx(5.0, rel=0.1) and home_of(spec) == Home("aws", "eu-west-1")


def test_a_path_or_a_bucket_is_nothing_to_bring() -> None:
    spec = spec_with("{dataset: /data/x}")
    assert datasets.with_pin(spec, spec.data.dataset) is spec and datasets.work_of(spec) is None


def test_the_home_follows_from_the_storage_unless_somebody_said_it() -> None:
    assert datasets.home_of(a_dataset()) == "aws/"
    assert datasets.home_of(a_dataset(region="aws/us-east-1")) == "aws/us-east-1"
    assert datasets.home_of(a_dataset(uri="file:///data/datasets")) == "local/local"


def test_an_address_names_a_dataset_and_perhaps_its_tree() -> None:
    assert named_in("dataset://a.b-c") == ("a.b-c", None)
    assert named_in(f"dataset://a@{SHA}") == ("a", SHA)


# --- where it may be read from ------------------------------------------------------------------------------------


def table_of(*places: str) -> OfferTable:
    pairs = [place.split("/") for place in places]
    types = [
        InstanceType(provider=provider, name="m", gpu=None, gpus=0, gpu_memory_gib=0, cpus=4, memory_gib=16)
        for provider in {provider for provider, _ in pairs}
    ]
    prices = [
        Price(
            provider=provider,
            region=region,
            zone="",
            instance_type="m",
            market=Market.ON_DEMAND,
            price=MicroUsd(1),
            as_of=NOW,
            source="test",
        )
        for provider, region in pairs
    ]
    return make_table(types, prices)


def turned_down(dataset: str, home: str, policy: str = "none") -> set[str]:
    """Places that no job with this dataset may use."""
    table = table_of("local/local", "onprem/hosts", "slurm/cluster", "aws/us-east-1", "gcp/us-central1")
    spec = spec_with(f"{{dataset: '{dataset}', replication_policy: {policy}}}")
    rules, _ = place_rules(datasets.with_pin(spec, replace(PIN, home=home).uri), table)
    names = [table.sellers.name[seller] for seller in table.places.seller]
    return {name for name, rule in zip(names, rules, strict=True) if rule}


def test_own_machines_are_one_place_for_what_nodes_fetch_themselves() -> None:
    assert turned_down("dataset://imagenet", "local/local") == {"aws", "gcp"}
    assert turned_down("dataset://imagenet", "onprem/hosts") == {"aws", "gcp"}
    assert turned_down("dataset://imagenet", "aws/us-east-1") == {"local", "onprem", "slurm", "gcp"}


def test_what_is_replicated_may_be_read_in_any_cloud_whose_lane_has_a_price() -> None:
    assert turned_down("dataset://imagenet", "local/local", "pre-stage") == set()


# --- what may go ----------------------------------------------------------------------------------------------


def test_objects_that_another_tree_needs_stay() -> None:
    old, new = NOW - timedelta(days=30), NOW
    assert datasets.is_waste("a", new, gone={"a"}, kept=set(), now=NOW)
    assert not datasets.is_waste("a", old, gone={"a"}, kept={"a"}, now=NOW)


def test_an_upload_that_was_given_up_is_removed_after_a_week() -> None:
    assert datasets.is_waste("a", NOW - timedelta(days=8), gone=set(), kept=set(), now=NOW)
    assert not datasets.is_waste("a", NOW - timedelta(days=6), gone=set(), kept=set(), now=NOW)


# --- objects --------------------------------------------------------------------------------------------------


def sha(number: int) -> str:
    return f"{number:064x}"[::-1]


def test_small_files_share_objects_and_large_ones_are_cut() -> None:
    small = [Entry(f"s{n:05}", 1000, sha(n + 1)) for n in range(20_000)]
    large = Entry("large", 2 * OBJECT_BYTES + 5, sha(99_999))
    objects = list(dataset_tree.stow([*small, large]))
    parts = [one for one in objects if one.pieces[0].sha256 == large.sha256]
    assert [one.size for one in parts] == [OBJECT_BYTES, OBJECT_BYTES, 5]
    assert len(objects) < 300 and all(one.size <= OBJECT_BYTES for one in objects)
    assert sum(one.size for one in objects) == large.size + 20_000 * 1000


def test_a_pack_is_never_larger_than_one_request_carries() -> None:
    files = [
        Entry(f"f{n:03}", SMALL_BYTES - 1, hashlib.sha256(b"%d" % n).hexdigest().replace("00", "01"))
        for n in range(200)
    ]
    sizes = [one.size for one in dataset_tree.stow(files)]
    assert max(sizes) <= OBJECT_BYTES and sum(sizes) == 200 * (SMALL_BYTES - 1)


def test_the_same_content_twice_is_stored_once_and_no_content_not_at_all() -> None:
    twice = [Entry("a", 10, sha(1)), Entry("b", 10, sha(1)), Entry("empty", 0, sha(2)), Entry("l", link="a")]
    (one,) = dataset_tree.stow(twice)
    assert one.size == 10


# --- what is refused --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "link", "stays"),
    [
        ("a", "b", True),
        ("d/a", "../b", True),
        ("a", "../b", False),
        ("d/a", "../../b", False),
        ("a", "/etc/passwd", False),
        ("a", "", False),
        ("c", "d/a/../..", False),
        ("d/a", ".", True),
    ],
)
def test_a_link_must_stay_in_the_tree(path: str, link: str, stays: bool) -> None:
    assert leads_inside(path, link) is stays


@pytest.mark.parametrize(
    "entries",
    [
        [],
        [Entry("/a", 1, SHA)],
        [Entry("a/../b", 1, SHA)],
        [Entry("a", 1, SHA), Entry("a", 1, SHA)],
        [Entry("a", 1, SHA), Entry("a/b", 1, SHA)],
        [Entry("a", link="b"), Entry("a/b", 1, SHA), Entry("b/c", 1, SHA)],
        [Entry("a", link="../b")],
        [Entry("a", -1, SHA)],
        [Entry("a", 1, "no digest")],
        [Entry("\udcff", 1, SHA)],
        [Entry("x" * 256, 1, SHA)],
    ],
)
def test_a_tree_that_cannot_be_is_refused(entries: list[Entry]) -> None:
    with pytest.raises(InvalidRequest):
        dataset_tree.tree_of(entries)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: data + b"\n",
        lambda data: data.replace(b'"size":1', b'"size":1.0'),
        lambda data: data.replace(b'{"path"', b'{ "path"'),
        lambda data: b"\n".join([data.split(b"\n")[0], *reversed(data.split(b"\n")[1:-1]), b""]),
        lambda data: data.replace(b"dataset", b"datasett"),
        lambda data: b"",
        lambda data: b"[" * 100_000,
    ],
)
def test_a_manifest_in_another_form_is_refused_whatever_its_digest(spoil: Callable[[bytes], bytes]) -> None:
    _, data = dataset_tree.tree_of([Entry("a", 1, SHA), Entry("b", 1, SHA)])
    spoiled = spoil(data)
    with pytest.raises(InvalidRequest):
        dataset_tree.read(spoiled, hashlib.sha256(spoiled).hexdigest())


def test_a_manifest_of_another_digest_is_refused() -> None:
    _, data = dataset_tree.tree_of([Entry("a", 1, SHA)])
    with pytest.raises(InvalidRequest, match="not the one"):
        dataset_tree.read(data, SHA)
