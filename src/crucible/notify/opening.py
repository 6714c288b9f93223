"""Every kind of channel with what carries its messages."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime

from crucible.model.alert import AlertChannelKind
from crucible.notify.apprise_places import ApprisePlaces
from crucible.notify.outside import Outside
from crucible.notify.posting import Poster
from crucible.notify.slack import Slack
from crucible.notify.smtp import Smtp, SmtpSettings
from crucible.notify.webhook import Webhook
from crucible.ports.notifier import Notifier


def open_notifiers(
    *, smtp: SmtpSettings | None, endpoints: Iterable[str], deployment: str, now: Callable[[], datetime]
) -> Mapping[AlertChannelKind, Notifier]:
    """Raises InvalidRequest."""
    outside = Outside(endpoints)
    poster = Poster(outside)
    return {
        AlertChannelKind.EMAIL: Smtp(smtp, deployment),
        AlertChannelKind.SLACK: Slack(poster),
        AlertChannelKind.WEBHOOK: Webhook(poster, now),
        AlertChannelKind.APPRISE: ApprisePlaces(outside),
    }
