"""Teams, projects, services, attribution and the log of changes, as people meet them (J1, B8, R14)."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from .conftest import SPEC, Reply, Server


@pytest.fixture(scope="module")
def site(server: Server) -> Iterator[Server]:
    """Vision is managed by mona, alice works there; speech is bob's; zoe looks at everything in vision."""
    for name, role in (("mona", "member"), ("zoe", "viewer"), ("cleo", "member")):
        done(server.call("POST", "/v1/users", "admin", json_body={"name": name, "role": role}), 201)
        made = done(server.call("POST", "/v1/tokens", "admin", json_body={"name": "t", "user": name}), 201)
        server.tokens[name] = made["token"]
    for team, members in (("vision", {"mona": "manager", "alice": "member", "zoe": "viewer"}), ("speech", {})):
        done(server.call("POST", "/v1/teams", "admin", json_body={"name": team}), 201)
        for user, role in members.items():
            done(server.call("PUT", f"/v1/teams/{team}/members/{user}", "admin", json_body={"role": role}))
    done(server.call("PUT", "/v1/teams/speech/members/bob", "admin", json_body={"role": "manager"}))
    done(server.call("POST", "/v1/projects", "mona", json_body={"name": "cats", "team": "vision"}), 201)
    done(server.call("POST", "/v1/projects", "bob", json_body={"name": "words", "team": "speech"}), 201)
    yield server


def done(reply: Reply, status: int = 200) -> Any:
    assert reply.status == status, reply.text
    return reply.json


def counted(**account: str) -> str:
    return SPEC + "".join(f"  {name}: {value}\n" for name, value in account.items())


def submitted(site: Server, who: str, **account: str) -> Any:
    return site.call("POST", "/v1/jobs", who, json_body={"spec_yaml": counted(**account)})


def job_of(site: Server, who: str, **account: str) -> Any:
    job_id = done(submitted(site, who, **account), 201)["id"]
    return site.call("GET", f"/v1/jobs/{job_id}", "admin").json


def cancelled(site: Server, job_id: str) -> None:
    site.call("POST", f"/v1/jobs/{job_id}/cancel", "admin")
    deadline = time.monotonic() + 20
    while site.call("GET", f"/v1/jobs/{job_id}", "admin").json["status"] != "cancelled":
        assert time.monotonic() < deadline
        time.sleep(0.02)


# --- who pays -------------------------------------------------------------------------------------------------------


def test_a_job_is_counted_under_the_team_and_project_it_names(site: Server) -> None:
    for account, counted_under in (
        ({"team": "vision", "project": "cats"}, ("vision", "cats")),
        ({"project": "cats"}, ("vision", "cats")),
        ({"team": "vision"}, ("vision", None)),
        ({}, ("vision", None)),  # her only team
    ):
        job = job_of(site, "alice", **account)
        assert (job["team"], job["project"]) == counted_under
    assert job_of(site, "cleo")["team"] is None
    assert job_of(site, "admin", team="speech")["team"] == "speech"


@pytest.mark.parametrize(
    ("who", "account", "status", "error", "field", "words"),
    [
        ("alice", {"team": "vison"}, 422, "unknown_team", "job.team", "did you mean vision?"),
        ("alice", {"team": "speech"}, 422, "unknown_team", "job.team", "there is no team speech"),
        ("alice", {"project": "words"}, 422, "unknown_project", "job.project", "there is no project words"),
        ("cleo", {"team": "mine"}, 422, "unknown_team", "job.team", "crucible team create mine"),
        ("admin", {"team": "vision", "project": "words"}, 400, "invalid_request", "job.team", "belongs to"),
        ("zoe", {"team": "vision"}, 403, "forbidden", None, "you may look"),
    ],
)
def test_what_is_not_theirs_to_spend_for_is_refused_and_nothing_is_submitted(
    site: Server, who: str, account: dict[str, str], status: int, error: str, field: str | None, words: str
) -> None:
    def newest() -> str:
        return str(site.call("GET", "/v1/jobs?limit=1", "admin").json["items"][0]["id"])

    before = newest()
    for path in ("/v1/jobs", "/v1/plan") if who != "zoe" else ("/v1/jobs",):
        reply = site.call("POST", path, who, json_body={"spec_yaml": counted(**account)})
        assert (reply.status, reply.json["error"], reply.json["details"].get("field")) == (status, error, field)
        assert words in reply.json["message"]
    assert newest() == before


def test_a_job_that_runs_again_stays_with_its_team_whoever_asks(site: Server) -> None:
    job = job_of(site, "alice")
    cancelled(site, job["id"])
    again = done(site.call("POST", f"/v1/jobs/{job['id']}/retry", "mona"), 201)
    after = site.call("GET", f"/v1/jobs/{again['id']}", "mona").json
    assert (after["team"], after["user_id"], after["origin"]) == ("vision", "mona", job["id"])


# --- who sees it ----------------------------------------------------------------------------------------------------


def test_a_team_sees_its_jobs_and_its_manager_changes_them(site: Server) -> None:
    job_id = job_of(site, "alice", project="cats")["id"]
    for who in ("mona", "zoe", "alice", "admin"):
        assert site.call("GET", f"/v1/jobs/{job_id}", who).status == 200
        assert job_id in [job["id"] for job in site.call("GET", "/v1/jobs?project=cats", who).json["items"]]
    for who in ("bob", "cleo"):
        assert site.call("GET", f"/v1/jobs/{job_id}", who).status == 404
        assert site.call("GET", "/v1/jobs?team=vision", who).json["items"] == []
    assert site.call("POST", f"/v1/jobs/{job_id}/cancel", "zoe").status == 403
    assert site.call("POST", f"/v1/jobs/{job_id}/hold", "mona").status == 200
    listed = site.call("GET", "/v1/jobs?user=alice&team=vision", "mona").json["items"]
    assert job_id in [job["id"] for job in listed] and {job["user_id"] for job in listed} == {"alice"}


def test_a_changed_membership_counts_at_once_here(site: Server) -> None:
    job_id = job_of(site, "alice")["id"]
    assert site.call("GET", f"/v1/jobs/{job_id}", "cleo").status == 404
    done(site.call("PUT", "/v1/teams/vision/members/cleo", "mona", json_body={"role": "viewer"}))
    assert site.call("GET", f"/v1/jobs/{job_id}", "cleo").status == 200
    assert site.call("GET", "/v1/me", "cleo").json["teams"] == {"vision": "viewer"}
    assert site.call("DELETE", "/v1/teams/vision/members/cleo", "mona").status == 204
    assert site.call("GET", f"/v1/jobs/{job_id}", "cleo").status == 404


# --- what managers may give -----------------------------------------------------------------------------------------


def test_a_manager_makes_services_and_their_tokens_for_the_own_team_only(site: Server) -> None:
    service = {"name": "vision-ci", "kind": "service", "team": "vision"}
    made = done(site.call("POST", "/v1/users", "mona", json_body=service), 201)
    assert (made["kind"], made["teams"]) == ("service", {"vision": "member"})
    asked = {"name": "ci", "user": "vision-ci", "grants": ["jobs"]}
    token = done(site.call("POST", "/v1/tokens", "mona", json_body=asked), 201)
    assert site.call("GET", "/v1/me", token["token"]).json["grants"] == ["jobs"]
    job_id = done(site.call("POST", "/v1/jobs", token["token"], json_body={"spec_yaml": SPEC}), 201)["id"]
    assert site.call("GET", f"/v1/jobs/{job_id}", "mona").json["team"] == "vision"
    limited = site.call("POST", "/v1/tokens", token["token"], json_body={"name": "more"})
    assert (limited.status, limited.json["details"]) == (403, {"grant": "manage"})

    assert site.call("POST", "/v1/tokens", "bob", json_body=asked).status == 404
    assert site.call("POST", "/v1/users", "bob", json_body={**service, "name": "spy"}).status == 403
    assert site.call("POST", "/v1/users", "mona", json_body={"name": "friend"}).status == 403
    assert site.call("POST", "/v1/tokens", "mona", json_body={"name": "x", "user": "alice"}).status == 403
    assert site.call("POST", "/v1/tokens", "mona", json_body={"name": "x", "grants": ["metrics"]}).status == 403

    # In another team too, it could do there what mona cannot: its tokens are the admins' from then on.
    done(site.call("PUT", "/v1/teams/speech/members/vision-ci", "bob", json_body={}))
    assert site.call("POST", "/v1/tokens", "mona", json_body=asked).status == 403
    assert [one["id"] for one in site.call("GET", "/v1/tokens?user=vision-ci", "admin").json["items"]] == [token["id"]]
    assert site.call("DELETE", f"/v1/tokens/{token['id']}", "admin").status == 204
    assert site.call("GET", "/v1/me", token["token"]).status == 401


def test_managers_see_the_people_of_their_teams(site: Server) -> None:
    assert {"mona", "alice", "zoe"} <= {user["id"] for user in site.call("GET", "/v1/users", "mona").json["items"]}
    assert "cleo" not in [user["id"] for user in site.call("GET", "/v1/users", "mona").json["items"]]
    assert site.call("GET", "/v1/users", "alice").status == 403
    assert [team["name"] for team in site.call("GET", "/v1/teams", "alice").json["items"]] == ["vision"]


def test_a_disabled_user_is_out_at_once_and_the_last_admin_stays(site: Server) -> None:
    assert site.call("GET", "/v1/me", "cleo").status == 200
    done(site.call("PATCH", "/v1/users/cleo", "admin", json_body={"disabled": True}))
    assert site.call("GET", "/v1/me", "cleo").status == 401
    done(site.call("PATCH", "/v1/users/cleo", "admin", json_body={"disabled": False}))
    assert site.call("GET", "/v1/me", "cleo").status == 200
    for change in ({"role": "member"}, {"disabled": True}):
        reply = site.call("PATCH", "/v1/users/admin", "admin", json_body=change)
        assert (reply.status, reply.json["error"]) == (409, "conflict")
    done(site.call("PATCH", "/v1/users/cleo", "admin", json_body={"role": "viewer"}))
    assert site.call("POST", "/v1/jobs", "cleo", json_body={"spec_yaml": SPEC}).status == 403
    done(site.call("PATCH", "/v1/users/cleo", "admin", json_body={"role": "member"}))


def test_a_team_with_jobs_that_are_not_over_stays(site: Server) -> None:
    done(site.call("POST", "/v1/teams", "admin", json_body={"name": "brief"}), 201)
    job = job_of(site, "admin", team="brief")
    held = site.call("DELETE", "/v1/teams/brief", "admin")
    assert held.status == 409 and job["id"] in held.json["message"]
    cancelled(site, job["id"])
    assert site.call("DELETE", "/v1/teams/brief", "admin").status == 204
    assert submitted(site, "admin", team="brief").status == 422
    retried = site.call("POST", f"/v1/jobs/{job['id']}/retry", "admin")
    assert (retried.status, retried.json["error"]) == (422, "unknown_team")


# --- the log --------------------------------------------------------------------------------------------------------


def actions(site: Server, who: str, query: str = "") -> list[str]:
    return [line["action"] for line in done(site.call("GET", f"/v1/audit?{query}", who))["items"]]


def test_what_people_change_is_in_the_log_and_no_secret_is(site: Server) -> None:
    job_id = job_of(site, "alice")["id"]
    for verb in ("hold", "release", "cancel"):
        site.call("POST", f"/v1/jobs/{job_id}/{verb}", "alice")
    assert actions(site, "admin", f"subject=job:{job_id}") == ["job.cancel", "job.release", "job.hold", "job.submit"]
    secret = done(site.call("POST", "/v1/tokens", "alice", json_body={"name": "hers"}), 201)["token"]
    template = {"body": "template: {name: logged, description: d}\njob: {command: ls}"}
    done(site.call("POST", "/v1/templates", "alice", json_body=template), 201)
    site.call("DELETE", "/v1/templates/logged", "alice")
    assert actions(site, "admin", "user=alice&limit=3") == ["template.remove", "template.save", "token.create"]
    everything = json.dumps(done(site.call("GET", "/v1/audit?limit=1000", "admin")))
    assert secret not in everything and "cru_" not in everything


def test_managers_read_what_concerns_their_team(site: Server) -> None:
    lines = done(site.call("GET", "/v1/audit?limit=1000", "mona"))["items"]
    assert {line["team"] for line in lines} == {"vision"}
    assert {"project.create", "team.member.set", "job.submit"} <= {line["action"] for line in lines}
    assert site.call("GET", "/v1/audit?team=speech", "mona").status == 404
    assert site.call("GET", "/v1/audit", "alice").status == 403
    first = done(site.call("GET", "/v1/audit?limit=2", "mona"))
    second = done(site.call("GET", f"/v1/audit?limit=2&before={first['next_before']}", "mona"))
    assert [line["seq"] for line in (*first["items"], *second["items"])] == [line["seq"] for line in lines[:4]]


def test_what_was_refused_is_not_in_the_log(site: Server) -> None:
    before = actions(site, "admin", "limit=1000")
    assert site.call("POST", "/v1/teams", "admin", json_body={"name": "vision"}).status == 409
    assert site.call("DELETE", "/v1/teams/vision/members/nobody", "mona").status == 404
    assert submitted(site, "alice", team="nowhere").status == 422
    assert actions(site, "admin", "limit=1000") == before


def test_the_log_seals_itself(site: Server) -> None:
    seal = done(site.call("GET", "/v1/audit/seal", "admin"))
    assert seal["broken"] is None and seal["lines"] > 10 and len(seal["digest"]) == 64
