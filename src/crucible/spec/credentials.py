"""What looks like a password, key or token among the variables of a job: stored to the letter with its spec, and shown
to whoever may see the job. A guess, so it only warns. No message repeats a value."""

import re

_ENDS = ("TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "CREDENTIALS", "APIKEY")
_KEYS = ("API", "ACCESS", "SECRET", "PRIVATE", "AUTH", "ACCOUNT", "ENCRYPTION", "SIGNING")
_LEAST = 8
# Forms that their makers chose so that they can be recognised.
_FORMS = re.compile(
    r"hf_[A-Za-z0-9]{20,}"
    r"|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{20,}"
    r"|sk-[A-Za-z0-9_-]{20,}"
    r"|(?:AKIA|ASIA)[A-Z0-9]{16}"
    r"|AIza[A-Za-z0-9_-]{30,}"
    r"|xox[abprs]-[A-Za-z0-9-]{10,}"
    r"|cru_[A-Za-z0-9_-]{20,}"
    r"|eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]+"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*"
    r"|[a-z][a-z0-9+.-]*://[^\s/:@]+:[^\s/@]{4,}@.*",
    re.DOTALL,
)
# Says where the credential is, or that there is none.
_ELSEWHERE = re.compile(r"/.*|\$.*|<.*>|(?:true|false|none|null|changeme)|[0-9.]*", re.IGNORECASE)


def is_credential(name: str, value: str) -> bool:
    if _FORMS.fullmatch(value):
        return True
    return _names_one(name) and len(value) >= _LEAST and " " not in value and not _ELSEWHERE.fullmatch(value)


def _names_one(name: str) -> bool:
    """By its last words: HF_TOKEN and AWS_SECRET_ACCESS_KEY, but not TOKENIZERS_PARALLELISM or PRIMARY_KEY."""
    *before, last = name.upper().split("_")
    return last in _ENDS or (last == "KEY" and bool(before) and before[-1] in _KEYS)
