"""What among the variables of a job is taken for a credential. Nothing is refused for it, and no message repeats it."""

import pytest

from crucible.spec import load
from crucible.spec.credentials import is_credential


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HF_TOKEN", "abcdefgh12"),
        ("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMIK7MDENGbPxRfiCY"),
        ("DB_PASSWORD", "correct-horse"),
        ("WANDB_API_KEY", "0123456789abcdef"),
        ("ANYTHING", "hf_" + "a" * 30),
        ("ANYTHING", "ghp_" + "a" * 36),
        ("ANYTHING", "AKIA" + "A" * 16),
        ("ANYTHING", "-----BEGIN RSA PRIVATE KEY-----\nMII\n"),
        ("DATABASE_URL", "postgresql://me:hunter2@db/x"),
        ("ANYTHING", "eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.c2lnbmF0dXJl"),
    ],
)
def test_credentials_are_recognised_by_name_or_form(name: str, value: str) -> None:
    assert is_credential(name, value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TOKENIZERS_PARALLELISM", "false-ish-value"),
        ("MAX_TOKENS", "2048000000"),
        ("HF_TOKEN", ""),
        ("HF_TOKEN", "$HF_TOKEN_OF_CI"),
        ("GOOGLE_APPLICATION_CREDENTIALS", "/etc/keys/gcp.json"),
        ("PRIMARY_KEY", "customer_id_1"),
        ("SORT_KEY", "created_at_desc"),
        ("API_KEY", "<your key here>"),
        ("NCCL_DEBUG", "INFO"),
        ("EOS_TOKEN", "<|endoftext|>"),
        ("PAD_TOKEN", "[PAD]"),
        ("URL", "https://host/path?x=1"),
    ],
)
def test_what_only_sounds_like_one_is_left_alone(name: str, value: str) -> None:
    assert not is_credential(name, value)


def test_a_warning_names_the_variable_and_the_way_out_never_the_value() -> None:
    loaded = load("job:\n  command: x\n  env: {WANDB_API_KEY: 0123456789abcdef, A: b}\n")
    (warning,) = loaded.warnings
    assert warning.field == "job.env" and "`crucible secret set WANDB_API_KEY`" in warning.message
    assert "0123456789" not in warning.message + warning.hint


def test_a_workflow_and_its_steps_are_warned_once_each() -> None:
    steps = "    - {name: a, command: x}\n    - {name: b, command: y, env: {B_TOKEN: abcdefgh2}}\n"
    text = "job:\n  env: {A_TOKEN: abcdefgh1}\n  steps:\n" + steps
    said = [warning.message for warning in load(text).warnings]
    assert sum("B_TOKEN" in one for one in said) == 1 and any("A_TOKEN" in one for one in said)
