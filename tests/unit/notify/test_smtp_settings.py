"""The operator's mail server, as it is named on the command line."""

import pytest

from crucible.model.alert import AlertChannelKind, Destination
from crucible.model.errors import InvalidRequest
from crucible.notify.smtp import Smtp, settings_of


def test_an_address_says_host_port_user_and_how_it_is_encrypted() -> None:
    made = settings_of("smtp://crucible%40example.org@mail.example.org", None, "pw")
    assert (made.host, made.port, made.user, made.sender) == (
        "mail.example.org",
        587,
        "crucible@example.org",
        "crucible@example.org",
    )
    assert not made.is_tls_first and not made.is_plain
    assert settings_of("smtps://mail.example.org", "c@example.org", None).port == 465
    assert settings_of("smtp://localhost:25?tls=off", "c@example.org", None).is_plain
    assert "pw" not in repr(made)


@pytest.mark.parametrize(
    ("url", "sender", "password", "words"),
    [
        ("mail.example.org", "c@x.org", None, "no mail server"),
        ("http://mail.example.org", "c@x.org", None, "no mail server"),
        ("smtp://u:pw@mail.example.org", "c@x.org", None, "does not belong into --smtp-url"),
        ("smtp://u@mail.example.org", "c@x.org", None, "--smtp-password-file"),
        ("smtp://u@mail.example.org?tls=off", "c@x.org", "pw", "in the open"),
        ("smtp://mail.example.org", None, None, "--smtp-from"),
        ("smtp://mail.example.org", "not an address", None, "no mail address"),
        ("smtp://mail.example.org?x=1", "c@x.org", None, "no mail server"),
    ],
)
def test_what_can_never_work_is_told_at_the_start(
    url: str, sender: str | None, password: str | None, words: str
) -> None:
    with pytest.raises(InvalidRequest, match=words):
        settings_of(url, sender, password)


def test_a_server_without_mail_says_how_to_get_it() -> None:
    with pytest.raises(InvalidRequest, match="--smtp-url"):
        Smtp(None, "d").check(Destination(AlertChannelKind.EMAIL, "ann@example.org"))


@pytest.mark.parametrize(
    "address",
    [
        "",
        "ann",
        "ann@",
        "@example.org",
        "ann@exa mple.org",
        "ann@example.org\r\nBcc: all@example.org",
        "ann@example.org\nRCPT TO:<x@y>",
        "Ann <ann@example.org>",
        "ann@example..org",
        "a\x00@example.org",
        "<script>@example.org>",
        ",".join(f"a{n}@example.org" for n in range(21)),
    ],
)
def test_what_is_no_list_of_mail_addresses_is_refused(address: str) -> None:
    smtp = Smtp(settings_of("smtp://localhost:25?tls=off", "c@example.org", None), "d")
    with pytest.raises(InvalidRequest, match="mail address"):
        smtp.check(Destination(AlertChannelKind.EMAIL, address))
