"""What a Lab is started with, as options of a command: read by `up` and `run` alike, handed from one to the other."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from crucible.lab.settings import BOOT_SCALE, HOME, REGIONS, Settings

NEAR_DATA = Path("../shared/data")  # where recorded prices lie beside a checkout

F = TypeVar("F", bound=Callable[..., Any])

home_option = click.option(
    "--data-dir",
    envvar=HOME,
    type=click.Path(path_type=Path, file_okay=False),
    help="The Lab's folder.  [default: ~/.crucible/lab]",
)


def lab_options(command: F) -> F:
    """What a Lab is started with."""
    options = (
        home_option,
        click.option("--port", type=click.IntRange(0, 65535), default=0, help="0 takes the last one, or any free one."),
        click.option(
            "--regions",
            default=",".join(REGIONS),
            show_default=True,
            help="Regions of the catalog, with commas between.",
        ),
        click.option("--seed", type=int, default=0, show_default=True, help="The same seed, the same luck."),
        click.option(
            "--speed",
            type=click.FloatRange(0.01, 100_000),
            default=1.0,
            show_default=True,
            help="Of the cloud's clock: boots, prices, notices and bills.",
        ),
        click.option(
            "--boot-scale",
            type=click.FloatRange(0, 100),
            default=BOOT_SCALE,
            show_default=True,
            help="Shortens only boots and stops; 1 is as slow as a real cloud.",
        ),
        click.option(
            "--hazard",
            type=click.FloatRange(0, 100_000),
            default=1.0,
            show_default=True,
            help="How often spot machines are taken; 0 is never.",
        ),
        click.option(
            "--scenario",
            type=click.Path(path_type=Path, exists=True, dir_okay=False),
            help="A file that says what goes wrong, and when.",
        ),
        click.option(
            "--data",
            envvar="CRUCIBLE_DATA",
            type=click.Path(path_type=Path, file_okay=False),
            help="Recorded spot prices.  [default: CRUCIBLE_DATA, or ../shared/data if it is there]",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def words(given: Mapping[str, Any]) -> list[str]:
    """The same options again, for the process in the background, which may look at paths from elsewhere."""
    found: list[str] = []
    for name, value in given.items():
        if value is not None:
            said = str(value.absolute()) if isinstance(value, Path) else str(value)
            found += [f"--{name.replace('_', '-')}", said]
    return found


def settings_of(
    home: Path,
    *,
    port: int,
    regions: str,
    seed: int,
    speed: float,
    boot_scale: float,
    hazard: float,
    scenario: Path | None,
    data: Path | None,
) -> Settings:
    return Settings(
        home=home,
        port=port,
        speed=speed,
        seed=seed,
        boot_scale=boot_scale,
        hazard=hazard,
        regions=tuple(dict.fromkeys(filter(None, (name.strip() for name in regions.split(","))))) or REGIONS,
        scenario=scenario,
        data=data or (NEAR_DATA if NEAR_DATA.is_dir() else None),
    )
