"""Can a job keep its checkpoints where it wants to? Asked at submit, because the answer after hours of training is too
late."""

from crucible.engine.context import Context
from crucible.model.errors import InvalidRequest, StorageFailed, StorageRefused
from crucible.model.spec import JobSpec
from crucible.model.storage import Address, is_object_storage, parse

# Somebody waits for the answer.
LOOK_S = 10.0
FIELD = "job.checkpoint.dir"


async def check_place(context: Context, spec: JobSpec) -> None:
    """Raises InvalidRequest, StorageRefused or StorageFailed, with the field."""
    place = spec.checkpoint.dir
    if place is None or not is_object_storage(place):
        return
    try:
        await context.clock.wait_for(_look(context, parse(place)), LOOK_S)
    except TimeoutError:
        message = f"{place} did not answer within {LOOK_S:.0f} s; try again, or keep the checkpoints elsewhere"
        raise StorageFailed(f"{FIELD}: {message}", field=FIELD) from None
    except (InvalidRequest, StorageRefused, StorageFailed) as error:
        raise type(error)(f"{FIELD}: {error.message}", field=FIELD) from error


async def _look(context: Context, address: Address) -> None:
    async for _ in context.storage.open(address).list():
        return
