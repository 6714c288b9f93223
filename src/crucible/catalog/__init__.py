"""The shipped catalog: facts about GPUs, machines, prices and benchmarks, read as columns."""
