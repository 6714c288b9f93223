"""Where should this code run? Reads it in a thread of its own, one request at a time, and answers with what was found,
ranked backends and a job file to start from. Nothing is stored, nothing of the code is run."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from crucible.core.offers import OfferTable
from crucible.core.perf import SpeedBook
from crucible.core.router.findings import Finding, winners
from crucible.core.router.preferences import Preferences
from crucible.core.router.source import SourceFile
from crucible.model.errors import TooLarge
from crucible.ports.clock import Clock
from crucible.wire.recommendations import MAX_CHARS, MAX_FILES

if TYPE_CHECKING:
    from crucible.core.router.analysis import Analysis
    from crucible.core.router.recommend import BackendRecommendation, Recommendations


class Recommender:
    def __init__(
        self,
        table: Callable[[], Awaitable[OfferTable]],
        book: Callable[[], Awaitable[SpeedBook]],
        clock: Clock,
        enabled: frozenset[str],
    ) -> None:
        """`enabled` are the providers that machines may be bought from."""
        self._table = table
        self._book = book
        self._clock = clock
        self._enabled = enabled
        self._turn = asyncio.Lock()  # reading a large file takes a second of a core: one at a time

    async def recommend(
        self, files: Sequence[SourceFile], wishes: Preferences, entry: str | None = None
    ) -> dict[str, Any]:
        """Raises TooLarge."""
        # Whoever asks first pays for loading them, not every start of a server.
        from crucible.core.router.analysis import analyse
        from crucible.core.router.recommend import recommend
        from crucible.core.router.skeleton import skeleton

        check_size(files)
        table, book, now = await self._table(), await self._book(), self._clock.now()
        async with self._turn:
            analysis = await asyncio.to_thread(analyse, files, book.architectures, entry)
        made = recommend(analysis, wishes, table, book, now, self._enabled)
        text = skeleton(analysis, made.profile, wishes, book.architectures)
        return view(analysis, made, text)


def check_size(files: Sequence[SourceFile]) -> None:
    chars = sum(len(file.text) for file in files)
    if len(files) > MAX_FILES or chars > MAX_CHARS:
        raise TooLarge(
            f"{len(files)} files with {chars:,} characters are too much to read; send at most {MAX_FILES} files "
            f"and {MAX_CHARS:,} characters: the script and what it imports",
            field="files",
        )


def view(analysis: "Analysis", made: "Recommendations", spec_yaml: str) -> dict[str, Any]:
    """Seed 003's words where it has them."""
    known = made.profile
    counted = {id(finding) for finding in winners(analysis.findings).values()}
    return {
        "entrypoint": analysis.entry or None,
        "files": list(analysis.files),
        "findings": [finding_view(one, is_counted=id(one) in counted) for one in analysis.findings],
        "notes": list(analysis.notes),
        "characteristics": asdict(known.characteristics),
        "assumptions": list(known.assumptions),
        "memory": list(known.memory),
        "hours_basis": made.hours_basis,
        "recommendations": [backend_view(one) for one in made.ranked],
        "excluded": [{"backend": one.backend, "reason": one.reason} for one in made.excluded],
        "spec_yaml": spec_yaml,
    }


def finding_view(finding: Finding, is_counted: bool) -> dict[str, Any]:
    """`counts`: false where a surer finding says something else."""
    return {**asdict(finding), "counts": is_counted}


def backend_view(one: "BackendRecommendation") -> dict[str, Any]:
    return {
        "backend": one.backend,
        "score": one.score,
        "costEstimate": {
            "hourly": one.cost.hourly_usd,
            "total": one.cost.total_usd,
            "confidence": one.cost.confidence,
        },
        "availability": {
            "status": one.availability.status,
            "waitTime": one.availability.wait_s,
            "basis": one.availability.basis,
        },
        "pros": list(one.pros),
        "cons": list(one.cons),
        "enabled": one.is_enabled,
        "hours": one.hours,
        "merits": {merit.value: round(value, 4) for merit, value in one.merits.items()},
        "offer": None if one.listing is None else offer_view(one),
    }


def offer_view(one: "BackendRecommendation") -> Mapping[str, Any]:
    listing = one.listing
    assert listing is not None
    return {
        "provider": listing.target.provider,
        "region": listing.target.region,
        "instance_type": listing.instance_type,
        "gpu": listing.gpu,
        "gpus": listing.gpus,
        "count": one.count,
        "market": listing.market.name.lower(),
        "price_as_of": listing.as_of,
        "price_source": listing.source,
    }
