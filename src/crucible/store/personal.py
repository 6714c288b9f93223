"""Where the database names people, and what becomes of it when somebody is forgotten. A test walks through every table:
a column that names a person, or a row that hangs on a job, without a word about it here is a failure."""

from collections.abc import Mapping
from enum import StrEnum

from sqlalchemy import Column, ColumnElement, Table

from crucible.model.budget import Scope
from crucible.model.secret import OwnerKind
from crucible.store import account_tables as a
from crucible.store import alert_tables as alerts
from crucible.store import budget_tables as b
from crucible.store import cost_tables as c
from crucible.store import money_tables as m
from crucible.store import record_tables as r
from crucible.store import retention_tables as k
from crucible.store import secret_tables as s
from crucible.store import tables as t

# How columns are called that hold the id of a person.
NAMES = frozenset({"user_id", "user", "owner", "created_by", "added_by", "set_by", "desired_by"})


class Fate(StrEnum):
    RENAMED = "renamed"  # a pseudonym stands there instead
    DELETED = "deleted"  # the row goes
    STAYS = "stays"  # the id, which then leads to nobody


# Jobs are treated apart: there may be a million.
OF_PEOPLE: Mapping[Column[str], Fate] = {
    t.jobs.c.user_id: Fate.RENAMED,
    t.jobs.c.desired_by: Fate.STAYS,  # of others' jobs; of their own it goes
    a.tokens.c.user_id: Fate.DELETED,
    a.identities.c.user_id: Fate.DELETED,
    s.secrets.c.owner: Fate.DELETED,
    s.secrets.c.set_by: Fate.RENAMED,
    a.memberships.c.user_id: Fate.DELETED,
    a.notices.c.user_id: Fate.DELETED,
    alerts.alert_rules.c.user_id: Fate.DELETED,
    alerts.alert_channels.c.user_id: Fate.DELETED,
    b.budgets.c.name: Fate.DELETED,
    b.budgets.c.created_by: Fate.RENAMED,
    a.teams.c.created_by: Fate.RENAMED,
    a.projects.c.created_by: Fate.RENAMED,
    a.audit.c.user_id: Fate.STAYS,
    r.datasets.c.user_id: Fate.RENAMED,
    r.templates.c.user_id: Fate.RENAMED,
    r.hosts.c.added_by: Fate.RENAMED,
    r.hosts.c.user: Fate.STAYS,  # of a computer
    r.claims.c.owner: Fate.STAYS,  # a server
    c.cost_keys.c.user: Fate.RENAMED,
    r.step_results.c.user_id: Fate.STAYS,  # goes with its job; until then it is found by a hash
    t.idempotency_keys.c.user_id: Fate.DELETED,
    k.kept_jobs.c.user_id: Fate.RENAMED,
    k.erasures.c.user_id: Fate.STAYS,  # until its end
}

# Where a column names other things too.
ONLY: Mapping[Column[str], ColumnElement[bool]] = {
    s.secrets.c.owner: s.secrets.c.owner_kind == OwnerKind.USER.value,
    b.budgets.c.name: b.budgets.c.scope == Scope.USER.value,
}
# What somebody made for a team stays for it, under the pseudonym.
UNLESS_OF_A_TEAM = (alerts.alert_rules.c.user_id, alerts.alert_channels.c.user_id)

# Rows that hang on a job and outlive it: what was charged and for what, and the speeds that plans are made with.
STAYS: frozenset[Table] = frozenset(
    {
        m.usage,
        m.postings,
        c.cost_job_days,
        r.allocations,
        r.predictions,
        t.orders,
        t.leases,
        t.tasks,
        t.attempts,
        r.checkpoints,  # goes with its lineage
        k.removals,
    }
)

# What a person is told of their jobs, with what tells one row from another within a job.
TOLD_OF_JOBS: Mapping[Table, tuple[str, ...]] = {
    t.tasks: ("index",),
    t.attempts: ("id",),
    t.events: ("seq",),
    t.orders: ("id",),
    t.leases: ("id",),
    r.allocations: ("id",),
    r.plans: (),
    r.job_artifacts: ("id",),
    r.outputs: ("task_index",),
    r.shards: ("number",),
    m.usage: ("id",),
    m.postings: ("id",),
}

# Nobody is told a secret, nor what one could be guessed from.
HIDDEN: frozenset[Column[str]] = frozenset(
    {
        a.tokens.c.digest,
        a.audit.c.digest,
        s.secrets.c.wrapped,
        s.secrets.c.sealed,
        alerts.alert_channels.c.wrapped,
        alerts.alert_channels.c.sealed,
    }
)
