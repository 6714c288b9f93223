"""The first program of a machine: the same order gives the same text, and whatever it is given stays data."""

import ast
import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crucible.core.boot import EC2, MAX_BYTES, script
from crucible.model.errors import InvariantBroken
from crucible.model.ids import OrderId
from crucible.model.lease import Boot
from making import an_order

BOOT = Boot(("http://10.0.0.1:7070", "https://crucible.example"), "cre.order.mac", "ab" * 32)


def given_to(text: str) -> Any:
    """What the program reads when it runs, found without running it."""
    for node in ast.parse(text, feature_version=(3, 8)).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "GIVEN":
            call = node.value
            assert isinstance(call, ast.Call) and ast.unparse(call.func) == "json.loads"
            (literal,) = call.args
            assert isinstance(literal, ast.Constant) and isinstance(literal.value, str)
            return json.loads(literal.value)
    raise AssertionError("the program is given nothing")


def code_of(text: str) -> str:
    """Everything but what it is given."""
    return "\n".join(line for line in text.splitlines() if not line.startswith("GIVEN = "))


def test_the_same_order_boots_the_same_way() -> None:
    order = an_order(is_spot=True)
    assert script(order, BOOT, EC2) == script(replace(order), replace(BOOT), replace(EC2))
    assert script(order, BOOT, EC2) != script(replace(order, id=OrderId("other")), BOOT, EC2)


def test_it_is_a_python_program_that_clouds_take() -> None:
    text = script(an_order(is_spot=True), BOOT, EC2)
    assert text.startswith("#!/usr/bin/env python3\n")
    assert len(text.encode()) < MAX_BYTES
    modules = {name.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import) for name in node.names}
    assert modules == {"hashlib", "http.client", "json", "os", "subprocess", "sys", "time"}


def test_the_agent_learns_whom_to_ask_and_how_the_machine_ends() -> None:
    cloud = replace(EC2, enrol_within=timedelta(minutes=5), max_life=timedelta(days=7))
    found = given_to(script(an_order(), BOOT, cloud))
    assert found["agent_sha256"] == "ab" * 32
    assert found["boot"] == {
        "servers": ["http://10.0.0.1:7070", "https://crucible.example"],
        "enrolment_token": "cre.order.mac",
        "order_id": "o",
        "power_off": ["shutdown", "-h", "now"],
        "enrol_within_s": 300.0,
        "max_life_s": 604800.0,
    }


def test_only_machines_that_may_be_taken_back_ask_for_notices() -> None:
    assert given_to(script(an_order(is_spot=True), BOOT, EC2))["is_watched"] is True
    assert given_to(script(an_order(is_spot=False), BOOT, EC2))["is_watched"] is False


@given(st.text(max_size=80), st.text(max_size=80), st.text(max_size=80))
def test_no_text_becomes_code(order_id: str, server: str, token: str) -> None:
    text = script(an_order(id=OrderId(order_id)), Boot((server,), token, "ab" * 32), EC2)
    boot = given_to(text)["boot"]
    assert (boot["order_id"], boot["servers"], boot["enrolment_token"]) == (order_id, [server], token)
    assert code_of(text) == code_of(script(an_order(), BOOT, EC2))


def test_quotes_line_ends_and_the_mark_itself_stay_data() -> None:
    hostile = "'\"''' + __import__('os').system('x') + \\\n\r\u2028 @GIVEN@ {0} %s \ud800"
    text = script(an_order(id=OrderId(hostile)), BOOT, EC2)
    assert given_to(text)["boot"]["order_id"] == hostile
    assert code_of(text) == code_of(script(an_order(), BOOT, EC2))


def test_an_order_that_does_not_say_where_the_agent_is_boots_nothing() -> None:
    for boot in (replace(BOOT, servers=()), replace(BOOT, agent_sha256="")):
        with pytest.raises(InvariantBroken, match="order o does not say"):
            script(an_order(), boot, EC2)
    many = replace(BOOT, servers=tuple(f"http://server-{i}.example" for i in range(500)))
    with pytest.raises(InvariantBroken, match="clouds take 12000"):
        script(an_order(), many, EC2)
