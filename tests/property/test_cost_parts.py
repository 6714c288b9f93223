"""Stretches cut at whole hours: whatever happened on a machine, its hours add up to what was charged, and useful and
idle are together all of it."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from crucible.core.cost_parts import parts_of
from crucible.core.ledger import HOUR_S, accrued, amount, split
from crucible.core.uses import Life, Span, Use, stints
from crucible.model.costs import Charged, CostKey, Ran, total
from crucible.model.ids import JobId, MachineId, OrderId, UserId
from crucible.model.ledger import ChargeKind, Rate, Usage
from crucible.model.units import MicroUsd

BEGIN = datetime(2026, 3, 28, 22, 17, 5, tzinfo=UTC)
S = timedelta(seconds=1)
KEY = CostKey(
    team="-",
    project="-",
    user=UserId("ann"),
    provider="aws",
    region="us-east-1",
    instance_type="p4d",
    gpu="A100",
    market="spot",
    kind="compute",
)
seconds = st.integers(0, 200_000)
spans = st.lists(
    st.tuples(seconds, st.one_of(st.none(), seconds), st.integers(0, 9)).map(
        lambda one: Ran(BEGIN + one[0] * S, None if one[1] is None else BEGIN + one[1] * S, one[2])
    ),
    max_size=6,
)


@st.composite
def stretches(draw: st.DrawFn) -> Charged:
    start, length = draw(seconds), draw(st.one_of(st.integers(0, 4), seconds))
    rate = Rate(
        draw(st.sampled_from(ChargeKind)), MicroUsd(draw(st.integers(0, 10**8))), draw(st.sampled_from((3600, 2628000)))
    )
    exact = amount(rate, length)
    usage = Usage(
        provider="aws",
        region="us-east-1",
        machine_id=MachineId("m"),
        order_id=OrderId("o"),
        job_id=JobId("j"),
        lease_id=None,
        rate=rate,
        from_at=BEGIN + start * S,
        to_at=BEGIN + (start + length) * S if draw(st.booleans()) else None,
    )
    if usage.to_at is not None:
        off = draw(st.sampled_from((0, 0, 1, -1, -exact, 12345)))
        usage = Usage(**{name: getattr(usage, name) for name in usage.__slots__} | {"amount": MicroUsd(exact + off)})
    return Charged(
        usage=usage,
        key=KEY,
        gpus=draw(st.integers(0, 8)),
        on_demand_per_hour=draw(st.one_of(st.none(), st.integers(0, 10**8).map(MicroUsd))),
        is_first=draw(st.booleans()),
        ran=tuple(draw(spans)),
    )


@given(stretches(), seconds)
def test_the_hours_of_a_stretch_add_up_to_it(one: Charged, later: int) -> None:
    now = max(one.usage.to_at or one.usage.from_at, BEGIN) + later * S
    found = list(parts_of([one], [], now))
    whole = total(part.sums for part in found)
    length = ((one.usage.to_at or now) - one.usage.from_at) // S
    is_compute = one.usage.rate.kind is ChargeKind.COMPUTE
    assert whole.cost == accrued(one.usage, now)
    assert whole.jobs == one.is_first
    assert whole.gpu_s == (one.gpus * length if is_compute else 0)
    if is_compute and one.on_demand_per_hour is not None:
        firm = amount(Rate(ChargeKind.COMPUTE, one.on_demand_per_hour, HOUR_S), length)
        assert (whole.saved, whole.unpriced) == (firm - whole.cost, 0)
    else:
        assert (whole.saved, whole.unpriced) == (0, whole.cost if is_compute else 0)
    for part in found:
        assert min(0, part.sums.cost) <= part.sums.useful <= max(0, part.sums.cost)
        assert part.hour.minute == part.hour.second == part.hour.microsecond == 0
    assert len({part.hour for part in found}) == len(found)


@given(stretches())
def test_an_hour_costs_its_share_of_the_seconds(one: Charged) -> None:
    now = (one.usage.to_at or one.usage.from_at) + 5000 * S
    found = list(parts_of([one], [], now))
    end = one.usage.to_at or now
    lengths = [max((min(end, part.hour + 3600 * S) - max(one.usage.from_at, part.hour)) // S, 0) for part in found]
    if sum(lengths):
        assert tuple(part.sums.cost for part in found) == split(accrued(one.usage, now), lengths)


@given(
    st.lists(st.tuples(seconds, st.one_of(st.none(), seconds), st.sampled_from(Use), st.integers(0, 9))),
    st.integers(0, 8),
    seconds,
    seconds,
)
def test_every_second_of_every_device_is_used_for_one_thing(
    some: list[tuple[int, int | None, Use, int]], gpus: int, start: int, length: int
) -> None:
    life = Life(
        gpus=gpus, spans=tuple(Span(*one) for one in some), enrolled_s=start + length // 3, last_s=start + length // 2
    )
    found = list(stints(life, start, start + length))
    assert sum((one.end_s - one.start_s) * one.devices for one in found) == length * max(gpus, 1)
    assert all(one.devices > 0 and start <= one.start_s < one.end_s <= start + length for one in found)
    busy = [one for one in found if one.use is Use.USEFUL]
    for one in busy:
        mine = [
            s
            for s in life.spans
            if s.use is Use.USEFUL and s.start_s <= one.start_s and (s.end_s is None or s.end_s >= one.end_s)
        ]
        assert mine, "nothing is useful without a rank"
