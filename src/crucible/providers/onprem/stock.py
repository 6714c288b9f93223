"""What own hosts have to give: pure functions from what is known of them to offers, and from an order to hosts and
devices. The same knowledge gives the same choice."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crucible.core.gpu_names import model_name
from crucible.model.host import Host, HostState, HostUse
from crucible.model.ids import OfferId
from crucible.model.offer import Counted, Offer, Target
from crucible.model.units import GIB, NOTHING

PROVIDER = "onprem"
REGION = "hosts"
TARGET = Target(PROVIDER, REGION, "vm")
CPU = "cpu"
# One offer per size; no computer holds more GPUs.
MAX_SIZE = 64


@dataclass(frozen=True, slots=True, order=True)
class Kind:
    """GPUs that can stand in for each other; the kind without a name is none."""

    model: str = ""
    memory_gib: float = 0

    @property
    def word(self) -> str:
        return f"{self.model}-{self.memory_gib:g}" if self.model else CPU


NO_GPU = Kind()


@dataclass(frozen=True, slots=True)
class Standing:
    """A host as it is now: what it has, and what of it is taken by anybody."""

    host: Host
    taken: tuple[Mapping[str, Any], ...]  # {"devices": […], "exclusive": bool}
    is_there: bool  # it answers

    @property
    def units(self) -> dict[str, Kind]:
        """Devices by name, those of a GPU that is cut into parts by its parts."""
        return {uuid: kind for gpu in self.host.facts.get("gpus", ()) for uuid, kind in units_of(gpu)}

    def free(self, kind: Kind) -> tuple[str, ...]:
        """Devices of that kind for a new machine."""
        busy = {device for claim in self.taken for device in claim["devices"]}
        return tuple(uuid for uuid, its in self.units.items() if its == kind and uuid not in busy)

    def can_take(self, kind: Kind, gpus: int) -> bool:
        if not self.is_there or self.host.state is not HostState.READY:
            return False
        if any(claim["exclusive"] for claim in self.taken):
            return False
        if self.taken and (self.host.use is HostUse.EXCLUSIVE or len(self.taken) >= max_machines(self.host)):
            return False
        return len(self.free(kind)) >= gpus

    def has(self, kind: Kind, gpus: int) -> bool:
        """Were nobody using it."""
        return sum(its == kind for its in self.units.values()) >= gpus


def units_of(gpu: Mapping[str, Any]) -> Iterable[tuple[str, Kind]]:
    model = model_name(gpu["name"])
    if not gpu.get("mig"):
        return [(gpu["uuid"], Kind(model, float(round(gpu["memory_mib"] / 1024))))]
    return [
        (part["uuid"], Kind(f"{model}-MIG-{part['profile']}", float(round(part["memory_mib"] / 1024))))
        for part in gpu["mig"]
    ]


def max_machines(host: Host) -> int:
    """At once on a host. Where it is shared, a machine without GPUs takes at least a CPU."""
    if host.use is HostUse.EXCLUSIVE:
        return 1
    return max(int(host.facts.get("cpus", 1)), len(host.facts.get("gpus", ())), 1)


# --- offers -------------------------------------------------------------------------------------------------


def offers_of(standings: Sequence[Standing]) -> list[Offer]:
    """Per zone: a machine without GPUs, and of every kind every size that some host could hold. A host that does not
    answer or is in quarantine can be waited for; one that is drained cannot."""
    shown = [one for one in standings if one.host.state is not HostState.DRAINING]
    offers: list[Offer] = []
    for zone in sorted({one.host.zone for one in shown}):
        there = [one for one in shown if one.host.zone == zone]
        offers.append(offer(zone, NO_GPU, 0, there))
        for kind in sorted({kind for one in there for kind in one.units.values()}):
            most = max(sum(its == kind for its in one.units.values()) for one in there)
            offers += [offer(zone, kind, gpus, there) for gpus in range(1, min(most, MAX_SIZE) + 1)]
    return offers


def offer(zone: str, kind: Kind, gpus: int, there: Sequence[Standing]) -> Offer:
    able = [one for one in there if one.has(kind, gpus)]
    return Offer(
        id=offer_id(zone, kind, gpus),
        target=TARGET,
        instance_type=f"{gpus}x{kind.model}" if gpus else CPU,
        gpu=kind.model or None,
        gpus=gpus,
        gpu_memory_gib=kind.memory_gib,
        # Of the least of them: any may be chosen.
        cpus=min(int(one.host.facts.get("cpus", 1)) for one in able),
        memory_gib=min(one.host.facts.get("memory_bytes", 0) for one in able) / GIB,
        price_per_hour=NOTHING,
        zone=zone,
        free_machines=sum(one.can_take(kind, gpus) for one in able),
        all_machines=len(able),
        counted=counted(kind, there) if gpus else None,
    )


def counted(kind: Kind, there: Sequence[Standing]) -> Counted:
    """A host that takes nothing new has nothing free."""
    has = sum(its == kind for one in there for its in one.units.values())
    return Counted(has, sum(len(one.free(kind)) for one in there if one.can_take(kind, 1)))


def offer_id(zone: str, kind: Kind, gpus: int) -> OfferId:
    return OfferId(f"{PROVIDER}/{zone}/{kind.word}/{gpus}")


# --- choosing -------------------------------------------------------------------------------------------------


def choose(
    standings: Sequence[Standing], wanted: OfferId, count: int, promised: Mapping[str, frozenset[str]]
) -> list[tuple[Standing, tuple[str, ...]]] | None:
    """A host and its devices for each machine, all different and in one zone; None if there are not enough. Hosts that
    are `promised` to other orders only where there is no other way: not every promise is kept."""
    found = [
        (one, devices)
        for one in standings
        for kind, gpus in wants(one, wanted)
        if one.can_take(kind, gpus)
        for devices in [pick(one.free(kind), gpus, promised.get(one.host.name))]
    ]
    if len(found) < count:
        return None
    return sorted(found, key=lambda place: preference(place[0], promised))[:count]


def wants(one: Standing, wanted: OfferId) -> list[tuple[Kind, int]]:
    """What a machine of that offer is, on this host."""
    _, _, size = wanted.rpartition("/")
    gpus = int(size) if size.isdecimal() else -1
    kinds = {NO_GPU, *one.units.values()}
    return [(kind, gpus) for kind in kinds if offer_id(one.host.zone, kind, gpus) == wanted]


def pick(free: Sequence[str], gpus: int, promised: frozenset[str] | None) -> tuple[str, ...]:
    return tuple(sorted(free, key=lambda device: device in (promised or ()))[:gpus])


def preference(one: Standing, promised: Mapping[str, frozenset[str]]) -> tuple[bool, int, str]:
    """Those with the fewest GPUs to spare first: large ones stay whole. The name breaks ties."""
    busy = {device for claim in one.taken for device in claim["devices"]}
    return one.host.name in promised, len(one.units.keys() - busy), one.host.name
