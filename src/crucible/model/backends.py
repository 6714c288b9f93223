"""One word for where work runs: seed 003's names of backends, for people and programs. Decides nothing."""

# Clouds sell each machine in two ways, and it matters which: on spot it may be taken away. AWS goes by its product.
_CLOUDS = {"aws": "ec2", "gcp": "gcp", "azure": "azure", "alibaba": "alibaba", "tencent": "tencent"}
# Ways of starting work that say more than who owns the machines.
_SCHEDULERS = ("k8s", "slurm", "ray", "ecs")

SPOT, ON_DEMAND = "_spot", "_ondemand"


def backend_name(provider: str, backend: str | None, *, is_spot: bool) -> str:
    """`local`, `ec2_spot`, `gcp_ondemand`, `modal`, `k8s` …"""
    if backend in _SCHEDULERS:
        return backend
    if provider in _CLOUDS:
        return _CLOUDS[provider] + (SPOT if is_spot else ON_DEMAND)
    return provider + SPOT if is_spot else provider


def provider_of(name: str) -> str:
    """Who sells what `name` stands for; a scheduler is nobody's and stands for itself."""
    word = name.removesuffix(SPOT).removesuffix(ON_DEMAND)
    return next((provider for provider, product in _CLOUDS.items() if product == word), word)


def is_scheduler(name: str) -> bool:
    return name in _SCHEDULERS
