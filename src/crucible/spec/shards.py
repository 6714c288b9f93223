"""The fields of work on many items."""

from datetime import timedelta

from crucible.model.shards import Shards
from crucible.spec.kinds import NAME, Number, Text, Whole
from crucible.spec.quantities import Duration
from crucible.spec.sections import ONE_SECOND
from crucible.spec.shapes import ListOf
from crucible.spec.table import Field, Group

MOST_ITEMS = 100_000_000

_PATH = Text(
    "a path inside the dataset or the shipped code",
    pattern=r"(?!/)(?!(?:.*/)?\.\.(?:/|$))[^\x00-\x1f\x7f]+",
    hint="relative, without ..",
    max_length=4096,
)
_PREFIX = Text(
    "an address such as s3://bucket/images/",
    pattern=r"(s3|gs|az|minio)://[^\x00-\x1f\x7f]+",
    hint="s3://, gs://, az://, minio://",
    max_length=4096,
)

SHARDS = Group(
    make=Shards,
    one_of=("count", "items", "glob", "prefix", "lines"),
    fields=(
        Field(
            name="count",
            kind=Whole(1, MOST_ITEMS),
            example=16,
            doc="the items are the numbers from 0 to count - 1",
            aka=("num_shards", "n"),
        ),
        Field(
            name="items",
            kind=ListOf(Text("an item", pattern=NAME, max_length=4096), "a list of items"),
            example=["a.wav", "b.wav"],
            doc="the items themselves",
            aka=("inputs", "list"),
        ),
        Field(
            name="glob",
            kind=_PATH,
            example="images/*.jpg",
            doc="the items are files of the dataset, or of the shipped code where there is no dataset",
            aka=("files", "pattern"),
        ),
        Field(
            name="prefix",
            kind=_PREFIX,
            example="s3://bucket/images/",
            doc="the items are the objects below this address",
        ),
        Field(
            name="lines",
            kind=_PATH,
            example="prompts.jsonl",
            doc="the items are the lines of this file of the dataset or of the shipped code",
        ),
        Field(
            name="size",
            kind=Whole(1, 1_000_000),
            example=100,
            doc="items that a worker takes at a time; if not given, 1 with count, else so that each worker comes about "
            "20 times",
            aka=("batch", "items_per_shard", "chunk_size"),
        ),
        Field(
            name="workers",
            kind=Whole(1, 100_000),
            example=8,
            doc="at most so many workers at a time; as many as the plan finds best if not given",
            aka=("parallelism",),
        ),
        Field(
            name="max_errors",
            kind=Whole(0, MOST_ITEMS),
            example=100,
            doc="more failed items fail the job; any number if not given",
        ),
        Field(
            name="reissue_after",
            kind=Number(1, 1000),
            default=2,
            example=3,
            doc="a shard that takes so many times as long as the others is given to a second worker when one is free",
        ),
        Field(
            name="lease",
            kind=Duration(ONE_SECOND, timedelta(days=7)),
            default="10m",
            example="1h",
            doc="a worker that says nothing for so long has lost its shard",
        ),
    ),
)
