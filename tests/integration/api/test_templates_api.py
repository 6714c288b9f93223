"""Job templates over HTTP: whose they are, what is refused, and jobs that name one."""

from typing import Any

import pytest

from crucible import templates

from .conftest import Reply, Server

MINE = """\
template:
  name: {name}
  description: says it
  parameters:
    word: {{type: text, default: hello}}
    gpus: {{type: whole, default: 1, least: 1, most: 4}}
job:
  name: said
  command: [echo, "${{{{ word }}}}"]
  resources: {{gpus: "${{{{ gpus }}}}"}}
"""


def store(server: Server, name: str, who: str = "alice", body: str | None = None) -> Reply:
    return server.call("POST", "/v1/templates", who, json_body={"body": body or MINE.format(name=name)})


def spec_of(server: Server, job_id: str) -> str:
    return server.call("GET", f"/v1/jobs/{job_id}/spec").text


def submit(server: Server, spec: str, **more: Any) -> Reply:
    return server.call("POST", "/v1/jobs", json_body={"spec_yaml": spec, **more})


def test_those_that_come_along_are_listed_first_with_their_parameters(server: Server) -> None:
    store(server, "aaa-first")
    items = server.call("GET", "/v1/templates").json["items"]
    names = [item["name"] for item in items]
    assert tuple(names[: len(templates.names())]) == templates.names() and "aaa-first" in names
    mine = items[names.index("aaa-first")]
    assert (mine["user"], mine["description"], items[0]["user"]) == ("alice", "says it", None)
    assert mine["parameters"][1] == {
        "name": "gpus",
        "type": "whole",
        "doc": "",
        "required": False,
        "default": 1,
        "least": 1,
        "most": 4,
        "choices": [],
    }


def test_everybody_reads_one_and_only_its_owner_or_an_admin_changes_it(server: Server) -> None:
    assert store(server, "owned").status == 201
    assert server.call("GET", "/v1/templates/owned", "bob").json["body"] == MINE.format(name="owned")
    changed = MINE.format(name="owned").replace("hello", "goodbye")
    refused = store(server, "owned", "bob", changed)
    assert (refused.status, refused.json["error"]) == (403, "forbidden") and "alice" in refused.json["message"]
    assert server.call("DELETE", "/v1/templates/owned", "bob").status == 403
    assert store(server, "owned", "admin", changed).json["user"] == "alice"
    assert store(server, "owned").status == 201
    assert server.call("DELETE", "/v1/templates/owned", "admin").status == 204
    assert server.call("DELETE", "/v1/templates/owned").status == 404
    assert server.call("GET", "/v1/templates/owned").status == 404


def test_names_of_ours_are_taken_and_ours_stay(server: Server) -> None:
    for who in ("alice", "admin"):
        assert store(server, "sweep", who).json["error"] == "conflict"
        assert server.call("DELETE", "/v1/templates/sweep", who).json["error"] == "conflict"


def test_a_broken_template_is_refused_with_every_problem_and_not_stored(server: Server) -> None:
    body = MINE.format(name="broken").replace("type: whole", "type: int").replace("${{ word }}", "${{ wrd }}")
    reply = store(server, "broken", body=body)
    assert (reply.status, reply.json["error"]) == (422, "invalid_spec")
    assert [(one["line"], one["field"]) for one in reply.json["details"]["problems"]] == [
        (6, "template.parameters.gpus.type"),
        (9, "job.command[1]"),
    ]
    assert server.call("GET", "/v1/templates/broken").status == 404


def test_one_whose_defaults_give_no_job_is_refused(server: Server) -> None:
    reply = store(server, "hollow", body="template: {name: hollow, description: d}\njob: {gpus: 1}")
    assert reply.status == 422 and "the job that the template hollow gives" in reply.json["message"]


def test_one_is_filled_in_and_nothing_is_submitted(server: Server) -> None:
    store(server, "filled")
    before = len(server.call("GET", "/v1/jobs").json["items"])
    reply = server.call("POST", "/v1/templates/filled/fill", json_body={"parameters": {"word": "a: b", "gpus": "2"}})
    assert reply.json["spec_yaml"] == (
        "# From the template filled: word=a: b, gpus=2\n"
        'job:\n  name: said\n  command:\n  - echo\n  - "a: b"\n  resources:\n    gpus: 2\n'
    )
    assert len(server.call("GET", "/v1/jobs").json["items"]) == before
    refused = server.call("POST", "/v1/templates/filled/fill", json_body={"parameters": {"gpus": 9, "wort": 1}})
    assert {one["field"] for one in refused.json["details"]["problems"]} == {"parameters.gpus", "parameters.wort"}
    assert server.call("POST", "/v1/templates/nowhere/fill", json_body={}).status == 404


def test_a_job_that_names_one_is_stored_as_the_job_itself(server: Server) -> None:
    store(server, "named")
    spec = "job: {template: named, with: {word: hi}, name: mine, resources: {gpus: 3}}"
    reply = submit(server, spec)
    assert reply.status == 201, reply.text
    job = server.call("GET", f"/v1/jobs/{reply.json['id']}").json
    assert (job["name"], job["gpus"]) == ("mine", 3)
    text = spec_of(server, reply.json["id"])
    assert text.startswith("# From the template named: word=hi\n") and "template:" not in text
    server.call("DELETE", "/v1/templates/named")
    assert server.call("POST", f"/v1/jobs/{reply.json['id']}/cancel").status == 200


def test_the_code_of_one_that_comes_along_is_there_without_being_sent(server: Server) -> None:
    reply = submit(server, "job: {template: evaluation, resources: {gpus: 1}}")
    assert reply.status == 201, reply.text
    assert 'args:\n  - "--samples=100"' in spec_of(server, reply.json["id"])
    own = submit(server, "job: {template: evaluation, resources: {gpus: 1}, code: .}")
    assert own.status == 400 and "none was shipped" in own.json["message"], "code of its own must be sent"


@pytest.mark.parametrize("route", ["jobs", "plan", "validate"])
def test_what_a_job_gives_a_template_is_checked_wherever_a_spec_is(server: Server, route: str) -> None:
    def ask(spec: str) -> Reply:
        return server.call("POST", f"/v1/{route}", json_body={"spec_yaml": spec})

    wrong = ask("job:\n  template: sweep\n  with:\n    trials: none\n    sed: 1\n")
    assert [(one["line"], one["column"], one["field"]) for one in wrong.json["details"]["problems"]] == [
        (4, 13, "job.with.trials"),
        (5, 5, "job.with.sed"),
    ]
    unknown = ask("job: {template: swep}").json["details"]["problems"]
    assert (unknown[0]["field"], unknown[0]["hint"]) == ("job.template", "did you mean 'sweep'?")
    slip = ask("job: {template: sweep, gpu: 1}").json["details"]["problems"]
    assert slip[0]["field"] == "job.gpu", "what is wrong with the job itself is told first"


def test_a_text_that_this_version_cannot_read_is_listed_with_the_reason(server: Server) -> None:
    from crucible.model.ids import UserId
    from crucible.model.template import StoredTemplate

    old = StoredTemplate(name="old", user_id=UserId("alice"), body="template: {}", created_at=server.deps.clock.now())
    server.run(server.deps.store.save_template(old, by=None))
    found = server.call("GET", "/v1/templates/old").json
    assert found["parameters"] == [] and "template.name" in found["problem"]
    assert any(item["name"] == "old" and item["problem"] for item in server.call("GET", "/v1/templates").json["items"])
    refused = submit(server, "job: {template: old}")
    assert refused.status == 409 and "stored anew" in refused.json["message"]
    assert store(server, "old").status == 201, "a new text mends it"
