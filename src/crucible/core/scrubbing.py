"""What opens doors, taken out of texts that people read later: our own tokens, signatures of addresses, passwords in
them. Pure. Values that people keep as secrets are known only where they are used: `agent/redact.py`."""

import re

MARK = "***"

_RULES = (
    # Of people; of orders, nodes, attempts and objects.
    (re.compile(r"\bcru_[A-Za-z0-9_-]{16,}"), f"cru_{MARK}"),
    (re.compile(r"\b(cr[enao])\.[A-Za-z0-9_-]+\.[0-9a-f]{64}"), rf"\1.{MARK}"),
    # Requests to storage that somebody signed: Amazon, Google, Azure.
    (
        re.compile(
            r"((?:X-Amz-(?:Signature|Credential|Security-Token)|X-Goog-(?:Signature|Credential)|[?&](?:sig|signature))=)"
            r"[^&\s\"'<>]+",
            re.IGNORECASE,
        ),
        rf"\1{MARK}",
    ),
    (re.compile(r"(\b(?:Bearer|Basic)\s+)[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE), rf"\1{MARK}"),
    (re.compile(r"(\b[a-z][a-z0-9+.-]{1,30}://[^\s/:@]{0,200}:)[^\s/@]{1,500}@", re.IGNORECASE), rf"\1{MARK}@"),
)


def scrubbed(text: str) -> str:
    for pattern, instead in _RULES:
        text = pattern.sub(instead, text)
    return text
