"""This computer, as a server opens it."""

from crucible.ports.provider import Provider, Surroundings
from crucible.providers.local.provider import LocalProvider


def open_provider(here: Surroundings) -> Provider:
    seller = LocalProvider(
        here.data_dir / "local",
        agent=here.agent,
        gpus=here.options.get("local_gpus"),
        gpu_memory_gib=here.options.get("local_gpu_memory", 80.0),
        server_file=here.server_file,
    )
    return Provider(sellers=[seller])
