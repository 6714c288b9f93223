"""The default network, security groups and placement groups."""

from typing import Any

import pytest

from aws_front import Amazon
from worlds import BIG, NEAR, NEXT, SMALL, a_sale

ANYBODY = {
    "IpProtocol": "tcp",
    "FromPort": 22,
    "ToPort": 22,
    "IpRanges": [{"CidrIp": "0.0.0.0/0", "Description": "ssh"}],
}


@pytest.fixture
def amazon() -> Amazon:
    return Amazon()


def group(amazon: Amazon, name: str = "g") -> str:
    return str(amazon.ec2("CreateSecurityGroup", GroupName=name, Description="for tests")["GroupId"])


def shown(amazon: Amazon, id: str) -> dict[str, Any]:
    (found,) = amazon.ec2("DescribeSecurityGroups", GroupIds=[id])["SecurityGroups"]
    return dict(found)


def test_there_is_a_default_network_with_a_subnet_a_zone(amazon: Amazon) -> None:
    (vpc,) = amazon.ec2("DescribeVpcs", Filters=[{"Name": "is-default", "Values": ["true"]}])["Vpcs"]
    subnets = amazon.ec2("DescribeSubnets", Filters=[{"Name": "vpc-id", "Values": [vpc["VpcId"]]}])["Subnets"]
    assert {subnet["AvailabilityZone"] for subnet in subnets} == {NEAR, NEXT}
    (one,) = amazon.run(SubnetId=subnets[0]["SubnetId"])
    assert one["Placement"]["AvailabilityZone"] == subnets[0]["AvailabilityZone"]
    assert amazon.refused("DescribeVpcs", VpcIds=["vpc-00000000000000000"]) == "InvalidVpcID.NotFound"
    assert amazon.refused("DescribeSubnets", SubnetIds=["subnet-00000000000000000"]) == "InvalidSubnetID.NotFound"


def test_rules_are_added_shown_and_taken_away(amazon: Amazon) -> None:
    id = group(amazon)
    itself = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": id}]}
    answer = amazon.ec2("AuthorizeSecurityGroupIngress", GroupId=id, IpPermissions=[ANYBODY, itself])
    assert [rule["IsEgress"] for rule in answer["SecurityGroupRules"]] == [False, False]
    ingress = {rule["IpProtocol"]: rule for rule in shown(amazon, id)["IpPermissions"]}
    assert ingress["tcp"]["IpRanges"] == ANYBODY["IpRanges"]
    assert ingress["-1"]["UserIdGroupPairs"][0]["GroupId"] == id
    twice = amazon.refused("AuthorizeSecurityGroupIngress", GroupId=id, IpPermissions=[ANYBODY])
    assert twice == "InvalidPermission.Duplicate"
    amazon.ec2("RevokeSecurityGroupIngress", GroupId=id, IpPermissions=[ANYBODY])
    rule = answer["SecurityGroupRules"][1]["SecurityGroupRuleId"]
    amazon.ec2("RevokeSecurityGroupIngress", GroupId=id, SecurityGroupRuleIds=[rule])
    assert shown(amazon, id)["IpPermissions"] == []
    gone = amazon.refused("RevokeSecurityGroupIngress", GroupId=id, IpPermissions=[ANYBODY])
    assert gone == "InvalidPermission.NotFound"


def test_everything_may_leave_until_that_is_revoked(amazon: Amazon) -> None:
    id = group(amazon)
    everything = {"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}
    assert shown(amazon, id)["IpPermissionsEgress"][0]["IpRanges"] == [{"CidrIp": "0.0.0.0/0"}]
    amazon.ec2("RevokeSecurityGroupEgress", GroupId=id, IpPermissions=[everything])
    assert shown(amazon, id)["IpPermissionsEgress"] == []
    amazon.ec2("AuthorizeSecurityGroupEgress", GroupId=id, IpPermissions=[ANYBODY])
    assert shown(amazon, id)["IpPermissionsEgress"][0]["FromPort"] == 22


@pytest.mark.parametrize(
    ("permission", "code"),
    [
        ({"IpProtocol": "tcp", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}, "InvalidParameterValue"),
        ({**ANYBODY, "FromPort": 23}, "InvalidParameterValue"),
        ({**ANYBODY, "IpRanges": [{"CidrIp": "everywhere"}]}, "InvalidParameterValue"),
        ({**ANYBODY, "IpRanges": [{"CidrIp": "10.0.0.1/8"}]}, "InvalidParameterValue"),
        ({**ANYBODY, "IpProtocol": "smoke"}, "InvalidParameterValue"),
        ({"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": "sg-00000000000000000"}]}, "InvalidGroup.NotFound"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(amazon: Amazon, permission: dict[str, Any], code: str) -> None:
    id = group(amazon)
    assert amazon.refused("AuthorizeSecurityGroupIngress", GroupId=id, IpPermissions=[permission]) == code


def test_a_group_that_is_used_stays(amazon: Amazon) -> None:
    id, other = group(amazon), group(amazon, "other")
    assert amazon.refused("CreateSecurityGroup", GroupName="g", Description="d") == "InvalidGroup.Duplicate"
    (one,) = amazon.run(SecurityGroupIds=[id])
    assert one["SecurityGroups"] == [{"GroupId": id, "GroupName": "g"}]
    assert amazon.refused("DeleteSecurityGroup", GroupId=id) == "DependencyViolation"
    amazon.ec2("TerminateInstances", InstanceIds=[one["InstanceId"]])
    amazon.later(10)
    pair = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": id}]}
    amazon.ec2("AuthorizeSecurityGroupIngress", GroupId=other, IpPermissions=[pair])
    assert amazon.refused("DeleteSecurityGroup", GroupId=id) == "DependencyViolation"
    amazon.ec2("DeleteSecurityGroup", GroupId=other)
    amazon.ec2("DeleteSecurityGroup", GroupName="g")
    assert amazon.refused("DescribeSecurityGroups", GroupIds=[id]) == "InvalidGroup.NotFound"
    assert amazon.refused("DeleteSecurityGroup", GroupName="default") == "CannotDelete"


def test_a_cluster_lives_in_one_zone() -> None:
    amazon = Amazon(a_sale(NEAR, BIG), a_sale(NEXT, BIG), a_sale(NEXT, SMALL))
    amazon.ec2("CreatePlacementGroup", GroupName="p", Strategy="cluster")
    assert amazon.refused("CreatePlacementGroup", GroupName="p") == "InvalidPlacementGroup.Duplicate"
    (first,) = amazon.run(InstanceType=BIG, Placement={"GroupName": "p", "AvailabilityZone": NEXT})
    assert first["Placement"]["GroupName"] == "p"
    (second,) = amazon.run(InstanceType=BIG, Placement={"GroupName": "p"})
    assert second["Placement"]["AvailabilityZone"] == NEXT
    asked = {"ImageId": amazon.image, "InstanceType": BIG, "MinCount": 1, "MaxCount": 1}
    elsewhere = {"GroupName": "p", "AvailabilityZone": NEAR}
    assert amazon.refused("RunInstances", **asked, Placement=elsewhere) == "InvalidParameterValue"
    assert amazon.refused("DeletePlacementGroup", GroupName="p") == "InvalidPlacementGroup.InUse"
    amazon.ec2("TerminateInstances", InstanceIds=[first["InstanceId"], second["InstanceId"]])
    amazon.later(10)
    amazon.ec2("DeletePlacementGroup", GroupName="p")
    assert amazon.ec2("DescribePlacementGroups")["PlacementGroups"] == []


def test_there_are_no_elastic_addresses(amazon: Amazon) -> None:
    assert amazon.ec2("DescribeAddresses", Filters=[{"Name": "tag:a", "Values": ["b"]}])["Addresses"] == []
    assert amazon.refused("ReleaseAddress", AllocationId="eipalloc-1") == "InvalidAllocationID.NotFound"
    assert amazon.refused("AllocateAddress") == "UnsupportedOperation"
