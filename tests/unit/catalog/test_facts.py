"""Small facts as CSV: what is written is read back, and a file of another shape is refused."""

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crucible.catalog import facts
from crucible.model.catalog import Gpu, Hazard, InstanceType
from crucible.model.errors import InvariantBroken
from crucible.model.offer import Fabric

GPU = Gpu(
    name="A100-80GB",
    memory_gib=80,
    bandwidth_gbps=2039.5,
    tflops=312,
    tflops_fp8=None,
    has_bf16=True,
    link_gbps=600,
    link="NVLink3",
    source='a sheet, "from memory"',
)
TYPE = InstanceType(
    provider="aws", name="p5", gpu="H100", gpus=8, gpu_memory_gib=80, cpus=192, memory_gib=2048, fabric=Fabric.HIGH
)
HAZARD = Hazard(
    provider="aws",
    region="",
    instance_type="",
    per_hour=0.06,
    low=0.004,
    high=1.0,
    availability=None,
    method="m",
    as_of=date(2026, 8, 22),
)


@pytest.mark.parametrize("value", [GPU, TYPE, HAZARD, replace(TYPE, gpu=None, disk_gib=0.5, network_gbps=100.0)])
def test_what_is_written_is_read_back(tmp_path: Path, value: object) -> None:
    (tmp_path / "some.csv").write_text(facts.write(type(value), [value, value]), encoding="utf-8")
    assert list(facts.read(tmp_path, "some.csv", type(value))) == [value, value]


words = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1)


@given(name=words, cpus=st.floats(0.1, 1e6), disk=st.none() | st.floats(0.1, 1e6))
def test_names_and_numbers_survive(
    tmp_path_factory: pytest.TempPathFactory, name: str, cpus: float, disk: float
) -> None:
    folder = tmp_path_factory.mktemp("facts")
    value = replace(TYPE, name=name, cpus=cpus, disk_gib=disk)
    (folder / "some.csv").write_text(facts.write(InstanceType, [value]), encoding="utf-8")
    assert list(facts.read(folder, "some.csv", InstanceType)) == [value]


def test_a_file_with_other_columns_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "gpus.csv").write_text("name,memory\nA100,80\n", encoding="utf-8")
    with pytest.raises(InvariantBroken, match=r"gpus\.csv .* run crucible prices build"):
        list(facts.read(tmp_path, "gpus.csv", Gpu))
