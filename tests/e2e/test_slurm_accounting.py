"""A server that was away for longer than Slurm remembers: what ended meanwhile is in the accounts, to the second."""

import sys
from datetime import datetime
from pathlib import Path

from crucible.core.ledger import amount
from crucible.model.ledger import ChargeKind, Rate
from crucible.model.units import MicroUsd
from slurm_server import deployed, until
from slurm_world import SlurmSite

PER_HOUR = MicroUsd(2 * 2_000_000)  # two GPUs


def test_a_job_that_ended_and_was_forgotten_while_no_server_ran(accounting_site: SlurmSite, tmp_path: Path) -> None:
    site = accounting_site
    with deployed(site, tmp_path, sys.executable) as deployment:
        client = deployment.client
        resources = "{gpus: 2, gpu_type: H100}"
        job_id = deployment.submit("patient", f"[ -e {tmp_path}/x ] || sleep 600", resources)
        deployment.wait_for(job_id, "running")
        slurm_job = site.call("squeue", "-h", "-o", "%A")
        deployment.server.stop()
        (tmp_path / "x").touch()
        site.call("scancel", slurm_job)
        site.forgets()
        deployment.server.start([])
        until(lambda: client.costs(job_id)["posted_microusd"] > 0, lambda: f"{client.why(job_id)}")
        job = deployment.finished(job_id)
        assert job["status"] == "completed", job["reason"]
        lost, succeeded = client.attempts(job_id)
        assert "(CANCELLED)" in (lost["reason"] or "") and succeeded["outcome"] == "succeeded"
        start, end = site.life_of(slurm_job)
        first = min(client.costs(job_id)["intervals"], key=lambda one: one["from_at"])
        assert [int(datetime.fromisoformat(str(first[at])).timestamp()) for at in ("from_at", "to_at")] == [start, end]
        assert not first["is_estimate"], "nothing is taken for lost"
        assert first["amount_microusd"] == amount(Rate(ChargeKind.COMPUTE, PER_HOUR, 3600), end - start)
