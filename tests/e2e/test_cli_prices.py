"""Prices by a person at a shell: the shipped catalog, a list of one's own, a mistake in it, and its end."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

LIMIT_S = 90.0
HEADER = "provider,region,zone,instance_type,market,price_usd_per_hour,as_of,source\n"


class Shell:
    def __init__(self, folder: Path) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("CRUCIBLE_", "XDG_"))}
        self.env = {**kept, "HOME": str(folder), "CRUCIBLE_HOME": str(folder / "data")}

    def run(self, *argv: str) -> subprocess.CompletedProcess[str]:
        program = [sys.executable, "-P", "-m", "crucible.cli.entry", *argv]
        return subprocess.run(program, env=self.env, capture_output=True, text=True, timeout=LIMIT_S)

    def json(self, *argv: str) -> Any:
        ran = self.run(*argv, "-o", "json")
        assert ran.stdout, ran.stderr
        return json.loads(ran.stdout)


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    shell = Shell(tmp_path)
    yield shell
    shell.run("server", "stop")


def price(shell: Shell) -> tuple[float, bool]:
    """Of a type that the catalog sells in several zones there."""
    found = shell.json(
        "prices", "show", "--provider", "aws", "--region", "us-east-1", "--market", "on_demand", "--gpu", "H100:8"
    )
    items = [item for item in found["items"] if item["instance_type"] == "p5.48xlarge"]
    assert items
    assert len({item["price_per_hour_usd"] for item in items}) == 1, "one price in every zone"
    return items[0]["price_per_hour_usd"], items[0]["is_stale"]


def test_a_list_of_ones_own_is_believed_until_it_ends(shell: Shell, tmp_path: Path) -> None:
    prices = tmp_path / "contract.csv"
    prices.write_text(HEADER)
    started = shell.run("server", "start", "--price-file", str(prices))
    assert started.returncode == 0, started.stderr
    shipped, is_stale = price(shell)
    assert shipped > 0 and is_stale

    prices.write_text(HEADER + "aws,us-east-1,*,p5.48xlarge,on-demand,12.34,,contract 17\n")
    assert shell.run("prices", "refresh").returncode == 0
    assert price(shell) == (12.34, False)
    best = shell.json("offers", "--gpu", "H100:8", "--on-demand", "--provider", "aws")["items"][0]
    assert (best["price_per_hour_usd"], best["source"]) == (12.34, "contract 17")
    sides = shell.json("compare", "--gpu", "H100:8", "--hours", "2")["items"]
    aws = next(side for side in sides if side["provider"] == "aws")
    assert aws["on_demand"]["total_usd"] == pytest.approx(24.68)

    prices.write_text(HEADER + "aws,us-east-1,*,p5.48xlarge,on-demand,cheap,,contract 17\n")
    failed = shell.run("prices", "refresh")
    assert failed.returncode == 7
    assert "line 2: price_usd_per_hour 'cheap'" in failed.stdout
    assert price(shell) == (12.34, False), "what was told before stays"
    assert "line 2" in shell.run("doctor").stdout

    prices.write_text(HEADER)
    assert shell.run("prices", "refresh").returncode == 0
    assert price(shell) == (shipped, True)
    (change,) = shell.json("prices", "history", "p5.48xlarge")["items"]
    assert change["price_per_hour_usd"] == 12.34


def test_the_catalog_is_there_without_any_source(shell: Shell) -> None:
    ran = shell.run("compare", "--gpu", "A100:8", "--hours", "6")
    assert ran.returncode == 0, ran.stderr
    assert "aws" in ran.stdout and "older than an hour" in ran.stderr
    assert shell.run("offers", "--gpu", "Z9000").returncode == 3
    assert "those of the shipped catalog" in shell.run("prices", "sources").stderr
