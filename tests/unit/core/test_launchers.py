"""What each framework's ranks run: argv and environment follow from the spec and the gang."""

import json
from dataclasses import replace

import pytest

from crucible.core.launch import ranks_per_node, recipe
from crucible.core.launchers.member import AGENT
from crucible.model.attempt import Attempt, Rank
from crucible.model.ids import NodeId
from crucible.model.launch import Launch
from crucible.model.policy import Policy
from crucible.model.shards import Shards
from crucible.model.spec import Execution, Framework, JobSpec, Resources
from making import a_job, a_task, an_attempt

DDP = JobSpec(
    framework=Framework.PYTORCH_DDP, entrypoint="train.py", args=("--lr", "0.1"), resources=Resources(nodes=2)
)


def gang(nodes: int, devices: int = 0) -> Attempt:
    """One rank for each node, as launchers want it."""
    ranks = tuple(
        Rank(
            rank=number,
            node_id=NodeId(f"n{number}"),
            node_rank=number,
            local_rank=0,
            devices=tuple(str(device) for device in range(devices)),
            address=f"10.0.0.{number + 1}",
            port=7000 + number,
        )
        for number in range(nodes)
    )
    return replace(an_attempt(), ranks=ranks, master_addr="10.0.0.1", master_port=7000)


def launches(spec: JobSpec, attempt: Attempt) -> list[Launch]:
    return [recipe(a_job(), a_task(), spec, attempt, rank, "file:///c", False, Policy()) for rank in attempt.ranks]


def flags(launch: Launch) -> dict[str, str]:
    pairs = [each[2:].partition("=") for each in launch.argv if each.startswith("--") and "=" in each]
    return {name: value for name, _, value in pairs}


def test_torchrun_meets_at_the_master_and_keeps_the_order_of_nodes() -> None:
    first, second = launches(DDP, gang(2, devices=8))
    for number, launch in enumerate((first, second)):
        assert launch.argv[:3] == ("python", "-m", "torch.distributed.run")
        assert launch.argv[-3:] == ("train.py", "--lr", "0.1")
        given = flags(launch)
        assert (given["nnodes"], given["node-rank"], given["nproc-per-node"]) == ("2", str(number), "8")
        assert (given["master-addr"], given["master-port"]) == ("10.0.0.1", "7000")
        assert "max-restarts" not in given


def test_processes_are_as_many_as_asked_for_else_one_for_each_gpu() -> None:
    asked = replace(DDP, execution=Execution(processes_per_node=3))
    assert flags(launches(asked, gang(2, devices=8))[0])["nproc-per-node"] == "3"
    assert flags(launches(DDP, gang(2))[0])["nproc-per-node"] == "1"


def test_launchers_have_one_rank_for_each_node_and_plain_programs_as_many_as_asked_for() -> None:
    three = Execution(processes_per_node=3)
    found = {each: ranks_per_node(JobSpec(framework=each, execution=three)) for each in Framework}
    assert [each for each, count in found.items() if count == 3] == [Framework.PLAIN, Framework.TENSORFLOW]
    assert set(found.values()) == {1, 3}
    assert ranks_per_node(JobSpec()) == 1


def test_pytorch_in_one_process_needs_no_torchrun() -> None:
    spec = JobSpec(framework=Framework.PYTORCH, entrypoint="train.py")
    (launch,) = launches(spec, gang(1))
    assert launch.argv == ("python", "train.py")
    assert (launch.env["RANK"], launch.env["WORLD_SIZE"], launch.env["MASTER_ADDR"]) == ("0", "1", "10.0.0.1")
    assert launches(replace(spec, framework=Framework.PYTORCH_DDP), gang(1))[0].argv[2] == "torch.distributed.run"


def test_what_is_no_python_file_is_run_as_it_is() -> None:
    shell = replace(DDP, entrypoint="run.sh", args=())
    assert launches(shell, gang(2))[0].argv[-3:] == ("--no-python", "/bin/sh", "run.sh")
    plugin = replace(DDP, entrypoint=None, args=())
    assert launches(plugin, gang(2))[0].argv[-2:] == ("--module", "crucible.train.run")


def test_a_command_is_left_alone_and_torchrun_hears_by_its_own_variables() -> None:
    spec = JobSpec(framework=Framework.PYTORCH_DDP, command=("torchrun", "train.py"), env={"PET_NNODES": "1"})
    launch = launches(spec, gang(2))[1]
    assert launch.argv == ("torchrun", "train.py")
    assert (launch.env["PET_NODE_RANK"], launch.env["PET_MASTER_ADDR"], launch.env["PET_MASTER_PORT"]) == (
        "1",
        "10.0.0.1",
        "7000",
    )
    assert launch.env["PET_NNODES"] == "1", "what the user sets goes before"


def test_an_elastic_gang_meets_at_a_store_beside_the_first_torchrun() -> None:
    spec = replace(DDP, execution=Execution(min_nodes=1, max_nodes=4))
    first, second = launches(spec, gang(2))
    assert first.argv[:5] == ("python", AGENT, "--launch", "torch-store", "--port=7000")
    assert first.argv[5:9] == ("--", "python", "-m", "torch.distributed.run")
    assert second.argv[:3] == ("python", "-m", "torch.distributed.run")
    for launch in (first, second):
        given = flags(launch)
        assert (given["nnodes"], given["rdzv-backend"], given["rdzv-endpoint"]) == ("1:4", "c10d", "10.0.0.1:7000")
        assert "is_host=0" in given["rdzv-conf"] and int(given["max-restarts"]) >= 5
        assert launch.env["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] == "1"
    assert flags(second)["local-addr"] == "10.0.0.2"


@pytest.mark.parametrize("framework", [Framework.PYTORCH, Framework.HOROVOD_ELASTIC])
def test_a_newcomer_starts_like_the_others_whoever_is_left(framework: Framework) -> None:
    spec = replace(DDP, framework=framework, execution=Execution(min_nodes=1, max_nodes=4))
    whole, grown = gang(2), gang(3)
    before, after = launches(spec, whole)[1], launches(spec, grown)[1]
    assert before.argv == after.argv
    assert flags(launches(spec, grown)[2]).get("master", "10.0.0.1:7000") == "10.0.0.1:7000"


def test_horovod_knows_the_slots_of_every_node() -> None:
    attempt = gang(2, devices=2)
    uneven = replace(attempt, ranks=(attempt.ranks[0], replace(attempt.ranks[1], devices=("0",))))
    launch = launches(replace(DDP, framework=Framework.HOROVOD), uneven)[1]
    assert launch.argv[:4] == ("python", AGENT, "--launch", "horovod")
    assert flags(launch) == {"master": "10.0.0.1:7000", "node": "1", "slots": "2,1"}
    assert launch.argv[launch.argv.index("--") + 1 :] == ("python", "train.py", "--lr", "0.1")


def test_the_driver_of_elastic_horovod_runs_on_the_first_node_only() -> None:
    spec = replace(
        DDP, framework=Framework.HOROVOD_ELASTIC, execution=Execution(min_nodes=1, max_nodes=3, processes_per_node=2)
    )
    first, second = launches(spec, gang(2))
    assert "--drive" in first.argv and "--drive" not in second.argv
    assert (flags(first)["min"], flags(first)["max"], flags(second)["slots"]) == ("2", "6", "2")


def test_tensorflow_names_every_worker_and_the_first_is_chief() -> None:
    spec = replace(DDP, framework=Framework.TENSORFLOW_MULTIWORKER)
    configs = [json.loads(launch.env["TF_CONFIG"]) for launch in launches(spec, gang(2))]
    assert [config["task"] for config in configs] == [{"type": "worker", "index": 0}, {"type": "worker", "index": 1}]
    assert configs[0]["cluster"] == configs[1]["cluster"] == {"worker": ["10.0.0.1:7000", "10.0.0.2:7001"]}


def test_an_entrypoint_asks_for_items_itself_and_a_command_is_run_once_for_each_shard() -> None:
    asks = JobSpec(entrypoint="infer.py", shards=Shards(count=9))
    (launch,) = launches(asks, gang(1))
    assert (launch.argv, launch.env["CRUCIBLE_SHARDS"]) == (("python", "infer.py"), "1")
    (launch,) = launches(JobSpec(command=("wc", "-l"), shards=Shards(count=9)), gang(1))
    assert launch.argv == ("python", "-m", "crucible.train.shard_command", "--", "wc", "-l")
    (launch,) = launches(JobSpec(command=("wc", "-l")), gang(1))
    assert launch.argv == ("wc", "-l") and "CRUCIBLE_SHARDS" not in launch.env
