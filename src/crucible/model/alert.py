"""Who is told what, where and when: rules that choose notices, channels that they go to, and what was sent. A channel's
secrets are kept sealed; nothing here can read them."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from crucible.model.ids import AlertChannelId, AlertRuleId, DeliveryId, UserId
from crucible.model.notice import Notice, NoticeKind, Severity
from crucible.model.offer import Market
from crucible.model.secret import OwnerKind, SealedValue, SecretLabel, SecretOwner
from crucible.model.units import MicroUsd


class ScopeKind(StrEnum):
    """Whose notices a rule is about, of those that its owner may see."""

    SERVER = "server"  # all of them
    TEAM = "team"
    PROJECT = "project"
    USER = "user"
    JOB = "job"  # jobs whose names match a pattern


@dataclass(frozen=True, slots=True)
class Scope:
    kind: ScopeKind = ScopeKind.SERVER
    name: str = ""  # of the team, project or user; a pattern of job names such as "train-*"


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceWish:
    """What somebody waits for: one GPU for an hour, below a price, or so much cheaper than it was."""

    gpu: str
    provider: str = ""  # any
    market: Market | None = None  # any
    below: MicroUsd | None = None
    drop: float | None = None  # 0.2: by a fifth


@dataclass(frozen=True, slots=True)
class PriceSeen:
    """What a rule has seen of its price: the last one, and the one that a fall is measured from."""

    last: MicroUsd
    peak: MicroUsd


@dataclass(frozen=True, slots=True, kw_only=True)
class QuietHours:
    """Every day from one time of day to another, in a time zone of the IANA's. What comes meanwhile waits for their
    end, and is then one message."""

    start: str  # "22:00"
    end: str  # "07:00"
    time_zone: str  # "Europe/Berlin"
    lets_critical_pass: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertRule:
    """A rule of a person tells what that person may see; a rule of a team, which its managers keep, what concerns the
    team."""

    id: AlertRuleId
    name: str
    user_id: UserId  # who made it, and whose it is unless it is a team's
    team: str | None = None
    kinds: tuple[NoticeKind, ...] = ()  # none: all
    least: Severity = Severity.INFO
    scope: Scope = field(default_factory=Scope)
    price: PriceWish | None = None
    channels: tuple[AlertChannelId, ...] = ()
    quiet: QuietHours | None = None
    # What is about the same as something told so recently is gathered, and told together afterwards.
    window_s: int = 300
    is_enabled: bool = True
    muted_until: datetime | None = None
    created_at: datetime
    price_seen: PriceSeen | None = None
    version: int = 0


# How what a channel holds sealed is called: no name that a person could give to a secret.
CHANNEL_LABEL = "alert-channel:"


class AlertChannelKind(StrEnum):
    EMAIL = "email"
    SLACK = "slack"  # an incoming webhook
    WEBHOOK = "webhook"  # JSON that is signed
    APPRISE = "apprise"  # what that library knows


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertChannel:
    """`shown` is what people see of where it goes: mail addresses, or a host without the rest of its address. The whole
    of it, with its secrets, is sealed; `version` counts the changes, and is part of what is sealed."""

    id: AlertChannelId
    name: str
    user_id: UserId
    team: str | None = None
    kind: AlertChannelKind
    shown: str
    key_id: str
    wrapped: str
    sealed: str
    created_at: datetime
    version: int = 0

    @property
    def value(self) -> SealedValue:
        return SealedValue(key_id=self.key_id, wrapped=self.wrapped, sealed=self.sealed)

    @property
    def label(self) -> SecretLabel:
        owner = (
            SecretOwner(OwnerKind.USER, self.user_id) if self.team is None else SecretOwner(OwnerKind.TEAM, self.team)
        )
        return SecretLabel(owner, f"{CHANNEL_LABEL}{self.id}", self.version)


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a message goes, opened. Never stored or shown; `repr` tells nothing of it."""

    kind: AlertChannelKind
    address: str = field(repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)  # that sign: the newest first


class DeliveryState(StrEnum):
    WAITING = "waiting"
    SENT = "sent"
    DEAD = "dead"  # given up; `error` says why


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """A message to one channel about one notice or several. It gathers notices until it is tried first; from then on
    it stays what it is, so that a receiver that gets it twice can tell by its id."""

    id: DeliveryId
    channel_id: AlertChannelId
    rule_id: AlertRuleId
    subject: str  # what the notices are about; "" if about anything
    severity: Severity  # the highest of them
    created_at: datetime
    not_before: datetime
    state: DeliveryState = DeliveryState.WAITING
    tries: int = 0
    error: str | None = None
    ended_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """A delivery, with the channel's name: what people see of who was told of a notice."""

    delivery: Delivery
    channel: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What goes out. Sent again, it is the same with the same id."""

    id: DeliveryId
    at: datetime
    severity: Severity
    title: str  # one line
    notices: tuple[Notice, ...] = ()
    more: int = 0  # that are not shown
    text: str = ""  # of a message that is not about notices
    is_test: bool = False
