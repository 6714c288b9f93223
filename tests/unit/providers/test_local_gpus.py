"""What nvidia-smi says becomes offers; whatever else it does means no GPUs, with the reason."""

import asyncio
import time
from pathlib import Path

import pytest

from crucible.core.gpu_names import model_name
from crucible.providers.local import LocalProvider
from crucible.providers.local.gpus import Detection, Gpu, detect_gpus, parse
from crucible.providers.local.stock import offers_of, stocks

EIGHT = "\n".join(f"{i}, NVIDIA H100 80GB HBM3, 81559" for i in range(8))
MIXED = "0, NVIDIA A100-SXM4-80GB, 81920\n1, NVIDIA GeForce RTX 4090, 24564\n2, NVIDIA A100-SXM4-80GB, 81920\n"


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty search path."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def nvidia_smi(tools: Path, script: str) -> None:
    path = tools / "nvidia-smi"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_gpus_are_found_with_model_and_memory(tools: Path) -> None:
    nvidia_smi(tools, f"echo '{EIGHT}'")
    found = detect_gpus()
    assert found.reason is None and len(found.gpus) == 8
    assert found.gpus[7] == Gpu("7", "H100", 80.0)


def test_a_computer_without_nvidia_smi_has_no_gpus(tools: Path) -> None:
    assert detect_gpus() == Detection((), "nvidia-smi is not installed")


def test_a_program_that_cannot_be_started_is_no_gpu(tools: Path) -> None:
    (tools / "nvidia-smi").write_text("")
    assert "cannot be started" in str(detect_gpus().reason)


def test_a_hanging_driver_is_not_waited_for(tools: Path) -> None:
    nvidia_smi(tools, "exec /bin/sleep 60")
    began = time.monotonic()
    found = detect_gpus(timeout_s=0.2)
    assert found.gpus == () and "no answer within 0.2 s" in str(found.reason)
    assert time.monotonic() - began < 5


def test_an_endless_answer_is_cut_off(tools: Path) -> None:
    nvidia_smi(tools, "exec /usr/bin/yes garbage")
    assert "ended with code" in str(detect_gpus().reason)


def test_an_error_of_nvidia_smi_is_passed_on(tools: Path) -> None:
    nvidia_smi(tools, "echo 'NVIDIA-SMI has failed: no driver'; exit 9")
    assert detect_gpus().reason == "nvidia-smi ended with code 9: NVIDIA-SMI has failed: no driver"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("", "lists no GPU"),
        ("No devices were found", "not understood"),
        ("0, NVIDIA A100\n", "not understood"),
        ("0, NVIDIA A100, [N/A]", "not understood"),
        ("x, NVIDIA A100, 100", "not understood"),
        ("0, A, 100\n0, A, 100", "one number to two"),
        ("\x00\xff\x80", "not understood"),
    ],
)
def test_an_answer_that_is_not_understood_is_no_gpu(answer: str, words: str) -> None:
    found = parse(answer)
    assert found.gpus == () and words in str(found.reason)


@pytest.mark.parametrize(
    ("full", "short"),
    [
        ("NVIDIA A100-SXM4-80GB", "A100"),
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("Tesla V100-SXM2-16GB", "V100"),
        ("Tesla T4", "T4"),
        ("NVIDIA GeForce RTX 4090", "RTX4090"),
        ("NVIDIA GeForce GTX 1080 Ti", "GTX1080"),
        ("Quadro RTX 8000", "RTX8000"),
        ("NVIDIA L40S", "L40S"),
        ("NVIDIA GH200 480GB", "GH200"),
    ],
)
def test_models_are_called_what_people_call_them(full: str, short: str) -> None:
    assert model_name(full) == short


def test_every_size_of_a_stock_is_offered() -> None:
    offers = offers_of(stocks(parse(EIGHT), None, 80), frozenset({"0", "5"}))
    assert [(o.id, o.gpus, o.instance_type) for o in offers[:3]] == [
        ("local/0", 0, "local-0gpu"),
        ("local/1", 1, "local-1gpu"),
        ("local/2", 2, "local-2gpu"),
    ]
    assert (
        len(offers) == 9
        and {o.free_gpus for o in offers[1:]} == {6}
        and {o.stock for o in offers[1:]} == {"local:gpus"}
    )
    assert {o.gpu for o in offers[1:]} == {"H100"} and offers[0].gpu is None
    assert {o.counted for o in offers[1:]} == {(8, 6)} and offers[0].counted is None


def test_gpus_of_different_models_are_different_stocks() -> None:
    offers = {o.id: o for o in offers_of(stocks(parse(MIXED), None, 80), frozenset({"0"}))}
    assert sorted(offers) == ["local/0", "local/A100-80/1", "local/A100-80/2", "local/RTX4090-24/1"]
    assert offers["local/A100-80/1"].free_gpus == 1 and offers["local/RTX4090-24/1"].gpu_memory_gib == 24


def test_declared_slots_are_called_slots_and_bound_real_gpus() -> None:
    nothing = Detection((), "none")
    (slots,) = stocks(nothing, 2, 40)
    assert (slots.model, slots.memory_gib, slots.devices) == ("slot", 40, ("0", "1"))
    assert stocks(nothing, None, 80) == () and stocks(nothing, 0, 80) == ()
    (some,) = stocks(parse(EIGHT), 3, 40)
    assert (some.model, some.memory_gib, some.devices) == ("H100", 80, ("0", "1", "2"))
    assert len(stocks(parse(EIGHT), 99, 40)[0].devices) == 8


def test_health_says_what_is_offered_and_why_there_are_no_gpus(tools: Path, tmp_path: Path) -> None:
    agent = tmp_path / "agent.pyz"
    agent.touch()
    health = asyncio.run(LocalProvider(tmp_path / "root", agent=agent, gpus=2).health())
    assert health == {
        "status": "healthy",
        "gpus": [{"model": "slot", "memory_gib": 80.0, "count": 2, "free": 2}],
        "gpu_detection": "nvidia-smi is not installed",
        "machines": 0,
        "problems": [],
    }
    nvidia_smi(tools, f"echo '{EIGHT}'")
    health = asyncio.run(LocalProvider(tmp_path / "root", agent=agent, gpus=9).health())
    assert health["gpus"] == [{"model": "H100", "memory_gib": 80.0, "count": 8, "free": 8}]
    assert health["status"] == "degraded" and "9 GPUs are declared, 8 were found" in health["problems"][0]
