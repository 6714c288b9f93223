"""Jobs on a real Slurm: a server submits what it buys, agents run as steps, and nothing is left when a job is over."""

from collections.abc import Iterator

import pytest
import yaml

from crucible.model.errors import InfeasibleJob
from slurm_server import Deployment, deployed, until
from slurm_world import SlurmSite, torch_python


@pytest.fixture(scope="module")
def deployment(slurm_site: SlurmSite, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    with deployed(slurm_site, tmp_path_factory.mktemp("slurm"), torch_python()) as made:
        yield made


@pytest.fixture(autouse=True)
def calm(deployment: Deployment) -> Iterator[None]:
    """Every story leaves the cluster as it found it."""
    yield
    until(deployment.site.is_idle, lambda: deployment.site.call("squeue"))


def test_a_job_runs_on_the_gpus_that_slurm_gave_it(deployment: Deployment) -> None:
    first = deployment.submit("first", "echo gpus=$CUDA_VISIBLE_DEVICES; sleep 5", "{gpus: 2, gpu_type: H100}")
    deployment.wait_for(first, "running")
    second = deployment.submit("second", "echo gpus=$CUDA_VISIBLE_DEVICES", "{gpus: 2, gpu_type: H100}")
    for job_id in (first, second):
        job = deployment.finished(job_id)
        assert job["status"] == "completed", job["reason"]
        assert (job["selected"]["provider"], job["selected"]["region"]) == ("slurm", "lake")
    seen = {deployment.log(job_id).strip() for job_id in (first, second)}
    assert seen == {"gpus=0,1", "gpus=2,3"}


def test_gpus_are_charged_for_and_the_doctor_finds_the_cluster_in_order(deployment: Deployment) -> None:
    job_id = deployment.submit("charged", "sleep 2", "{gpus: 4, gpu_type: H100}")
    assert deployment.finished(job_id)["status"] == "completed"
    until(deployment.site.is_idle, lambda: deployment.site.call("squeue"))
    until(lambda: deployment.client.costs(job_id)["posted_microusd"] > 0, lambda: f"{deployment.client.costs(job_id)}")
    (place,) = deployment.client.provider_health("slurm")["places"]
    assert (place["status"], place["region"], place["gpus"], place["free_gpus"]) == ("healthy", "lake", 16, 16)
    assert "none is kept" in place["accounting"] and "taken for lost" in place["accounting"]


def test_a_cancel_ends_the_job_in_slurm_too(deployment: Deployment) -> None:
    job_id = deployment.submit("cancelled", "sleep 600", "{gpus: 1, gpu_type: H100}")
    deployment.wait_for(job_id, "running")
    deployment.client.cancel(job_id)
    assert deployment.finished(job_id)["status"] == "cancelled"


def test_what_no_node_has_is_refused_with_the_field_that_blocks(deployment: Deployment) -> None:
    before = deployment.site.jobs()
    for resources in (
        "{gpus: 9, gpu_type: H100, nodes: 1}",
        "{gpus: 8, gpu_type: A100, nodes: 1}",
        "{gpus: 3, nodes: 3}",
    ):
        with pytest.raises(InfeasibleJob, match="no offer fits"):
            deployment.submit("impossible", "true", resources)
    assert deployment.site.jobs() == before


def test_a_job_goes_on_when_the_server_was_away(deployment: Deployment) -> None:
    job_id = deployment.submit("patient", "sleep 6; echo done", "{gpus: 1, gpu_type: H100}")
    deployment.wait_for(job_id, "running")
    before = deployment.site.jobs()
    deployment.server.stop()
    deployment.server.start([])
    job = deployment.finished(job_id)
    assert job["status"] == "completed", job["reason"]
    assert "done" in deployment.log(job_id)
    assert [attempt["outcome"] for attempt in deployment.client.attempts(job_id)] == ["succeeded"]
    assert len(deployment.site.jobs()) == len(before), "nothing was submitted twice"


TORCHRUN = (
    "python -m torch.distributed.run --nnodes=$NNODES --node-rank=$NODE_RANK --nproc-per-node=1 "
    "--master-addr=$MASTER_ADDR --master-port=$MASTER_PORT sum.py"
)
SUM = """\
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
total = torch.ones(1) * (dist.get_rank() + 1)
dist.all_reduce(total)
print(f"rank {dist.get_rank()} of {dist.get_world_size()}: {total.item():g}", flush=True)
dist.destroy_process_group()
"""


def test_torchrun_joins_two_nodes_of_one_allocation(deployment: Deployment) -> None:
    command = f"cat > sum.py <<'END'\n{SUM}END\n{TORCHRUN}"
    spec = yaml.safe_dump(
        {
            "job": {
                "name": "torchrun",
                "command": ["sh", "-c", command],
                "env": {"OMP_NUM_THREADS": "1"},
                "resources": {"gpus": 2, "gpu_type": "A100", "nodes": 2},
                "execution": {"backend": "slurm"},
            }
        }
    )
    before = len(deployment.site.jobs())
    job_id = str(deployment.client.submit("torchrun", spec)["id"])
    job = deployment.finished(job_id)
    text = deployment.log(job_id)
    assert job["status"] == "completed", (job["reason"], text)
    assert "rank 0 of 2: 3" in text and "rank 1 of 2: 3" in text
    assert len(deployment.site.jobs()) == before + 1, "both nodes are one job of Slurm"


def test_a_job_goes_on_elsewhere_when_its_node_dies(deployment: Deployment) -> None:
    """It stood on one of two nodes: the other one is left."""
    job_id = deployment.submit("survivor", "sleep 8; echo $SLURMD_NODENAME done", "{gpus: 1, gpu_type: A100}")
    deployment.wait_for(job_id, "running")
    node = deployment.site.call("squeue", "-h", "-t", "R", "-o", "%N")
    deployment.site.kill_node(node)
    try:
        job = deployment.finished(job_id)
        assert job["status"] == "completed", job["reason"]
        assert [attempt["outcome"] for attempt in deployment.client.attempts(job_id)] == ["lost", "succeeded"]
    finally:
        deployment.site.start_node(node)
