"""The AWS command line, unmodified, against a real Lab: nothing but `crucible lab env aws` tells it where."""

import json
import subprocess
import sys
from typing import Any

from lab_process import RunningLab


def aws(lab: RunningLab, *words: str, expect: int = 0) -> Any:
    """What it answers; with `expect`, what it complains about."""
    done = subprocess.run(
        [sys.executable, "-m", "awscli", *words, "--output", "json"],
        env=lab.environ(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == expect, done.stderr
    if expect:
        return done.stderr
    return json.loads(done.stdout) if done.stdout.strip() else None


def test_instances_are_run_tagged_described_and_terminated(lab: RunningLab, image: str) -> None:
    specification = "ResourceType=instance,Tags=[{Key=by,Value=cli}]"
    bought = aws(
        lab, "ec2", "run-instances", "--image-id", image, "--instance-type", "g6.xlarge", "--count", "2",
        "--tag-specifications", specification, "--user-data", "#!/bin/sh\ntrue\n",
    )  # fmt: skip
    ids = [one["InstanceId"] for one in bought["Instances"]]
    aws(lab, "ec2", "create-tags", "--resources", ids[0], "--tags", "Key=first,Value=yes")
    found = aws(lab, "ec2", "describe-instances", "--filters", "Name=tag:first,Values=y*", "--page-size", "5")
    assert [one["InstanceId"] for part in found["Reservations"] for one in part["Instances"]] == ids[:1]
    ended = aws(lab, "ec2", "terminate-instances", "--instance-ids", *ids)
    assert {one["CurrentState"]["Name"] for one in ended["TerminatingInstances"]} == {"shutting-down"}


def test_prices_quotas_and_parameters_can_be_read(lab: RunningLab) -> None:
    history = aws(
        lab, "ec2", "describe-spot-price-history", "--instance-types", "g6.xlarge", "--product-descriptions",
        "Linux/UNIX", "--max-items", "3",
    )  # fmt: skip
    assert len(history["SpotPriceHistory"]) == 3
    products = aws(
        lab, "pricing", "get-products", "--region", "us-east-1", "--service-code", "AmazonEC2", "--max-items", "2",
        "--filters", "Type=TERM_MATCH,Field=instanceType,Value=g6.xlarge",
    )  # fmt: skip
    assert json.loads(products["PriceList"][0])["product"]["attributes"]["instanceType"] == "g6.xlarge"
    quota = aws(lab, "service-quotas", "get-service-quota", "--service-code", "ec2", "--quota-code", "L-DB2E81BA")
    assert quota["Quota"]["Value"] > 0
    parameter = "/aws/service/debian/release/12/latest/amd64"
    assert aws(lab, "ssm", "get-parameter", "--name", parameter)["Parameter"]["Value"].startswith("ami-")
    assert aws(lab, "sts", "get-caller-identity")["Account"] == lab.running.account


def test_a_bogus_type_is_refused_in_amazons_words(lab: RunningLab, image: str) -> None:
    said = aws(
        lab, "ec2", "run-instances", "--image-id", image, "--instance-type", "p9.enormous", "--count", "1", expect=255
    )
    assert "(InvalidParameterValue)" in said
