"""What is left of budgets, in as many lines as a graph can show."""

from crucible.core.budget import Position, Standing
from crucible.engine.budget_shares import MAX_LABEL, MOST, left_shares
from crucible.model.budget import Budget, Period, Scope, budget_id
from crucible.model.ids import UserId
from crucible.model.units import MicroUsd
from crucible.testing.specimens import NOW


def standing(scope: Scope, name: str, spent: int, limit: int = 100) -> Standing:
    budget = Budget(
        id=budget_id(scope, name, Period.ONCE),
        scope=scope,
        name=name,
        period=Period.ONCE,
        limit=MicroUsd(limit),
        created_by=UserId("ann"),
        created_at=NOW,
    )
    return Standing(budget, Position(MicroUsd(spent)))


def test_teams_and_projects_are_told_by_name_and_what_is_promised_counts() -> None:
    promised = standing(Scope.PROJECT, "llama", 50).promising(MicroUsd(80))
    shares = left_shares([standing(Scope.TEAM, "vision", 25), promised, standing(Scope.SERVER, "", 0, limit=0)])
    assert shares == {
        ("team", "vision", "once"): 0.75,
        ("project", "llama", "once"): -0.3,
        ("server", "", "once"): 0.0,
    }


def test_people_and_jobs_have_no_name_and_the_tightest_is_told() -> None:
    people = [standing(Scope.USER, "ann", 10), standing(Scope.USER, "bob", 90), standing(Scope.JOB, "j1", 40)]
    assert left_shares(people) == {("user", "other", "once"): 0.1, ("job", "other", "once"): 0.6}


def test_however_many_there_are_the_tightest_few_have_a_line_of_their_own() -> None:
    many = [standing(Scope.TEAM, f"{number:03}" * 50, number, 1000) for number in range(200)]
    shares = left_shares(many)
    assert len(shares) == MOST + 1 and all(len(name) <= MAX_LABEL for _, name, _ in shares)
    assert min(shares.values()) == 0.801 and shares["team", "other", "once"] == 1 - (199 - MOST) / 1000
