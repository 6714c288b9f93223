"""The shipped catalog: facts about GPUs, machines, prices and benchmarks, read as columns."""

from crucible.catalog.catalog import Catalog, load

__all__ = ["Catalog", "load"]
