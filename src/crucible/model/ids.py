"""Names of things. Every id is a string of its own type, so that a lease cannot be passed for a machine."""

from typing import NewType

JobId = NewType("JobId", str)
TaskId = NewType("TaskId", str)
AttemptId = NewType("AttemptId", str)
OrderId = NewType("OrderId", str)
LeaseId = NewType("LeaseId", str)
MachineId = NewType("MachineId", str)
NodeId = NewType("NodeId", str)
ChannelId = NewType("ChannelId", str)
OfferId = NewType("OfferId", str)
UserId = NewType("UserId", str)
TokenId = NewType("TokenId", str)
Digest = NewType("Digest", str)  # lower-case hex sha256
AlertRuleId = NewType("AlertRuleId", str)
AlertChannelId = NewType("AlertChannelId", str)
DeliveryId = NewType("DeliveryId", str)  # of a message to one channel: it stays the same however often it is sent
