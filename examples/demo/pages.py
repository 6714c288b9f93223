"""Every page there is, with something on it: for those who look at all of them."""

from collections.abc import Mapping

from examples.demo import present_jobs as jobs
from examples.demo.past_jobs import SEARCH, WORKFLOW

JOB_TABS = ("log", "metrics", "cost", "timeline", "attempts", "checkpoints", "events", "spec")
PRICE_TABS = ("offers", "list", "history", "sources")
ALERT_TABS = ("notices", "rules", "channels")
SETTINGS_TABS = ("health", "tokens", "secrets", "teams", "people", "audit", "retention", "about")
# A line of the price history that every demo has.
LINE = "gpu=A100-40GB&provider=aws&region=us-east-1&market=spot"


def pages(ids: Mapping[str, str]) -> dict[str, str]:
    """Paths by their names. `ids`: of the demo's jobs, by theirs."""
    job = ids[jobs.RESUMED.name]
    return {
        "overview": "",
        "jobs": "jobs",
        **{f"job-{tab}": f"jobs/{job}?tab={tab}" for tab in JOB_TABS},
        "job-failed": f"jobs/{ids[jobs.FAILED.name]}",
        "job-waiting": f"jobs/{ids[jobs.WAITING.name]}",
        "job-tasks": f"jobs/{ids[SEARCH]}?tab=tasks",
        "submit": "submit",
        "submit-job": f"submit?from={job}",
        "compare": "compare",
        "costs": "costs",
        "sweeps": "sweeps",
        "sweeps-search": f"sweeps?job={ids[SEARCH]}",
        "sweeps-workflow": f"sweeps?job={ids[WORKFLOW]}",
        "sweeps-batch": f"sweeps?job={ids[jobs.LABELS.name]}",
        "sweeps-evaluation": f"sweeps?job={ids[jobs.COMPARED.name]}",
        "nodes": "nodes",
        **{f"prices-{tab}": f"prices?tab={tab}&{LINE}" for tab in PRICE_TABS},
        "budgets": "budgets",
        **{f"alerts-{tab}": f"alerts?tab={tab}" for tab in ALERT_TABS},
        "lab": "lab",
        **{f"settings-{tab}": f"settings?tab={tab}" for tab in SETTINGS_TABS},
    }
