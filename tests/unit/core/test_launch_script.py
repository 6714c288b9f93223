"""The start of a job as a script: every word of the user's stays a word, and no secret is in it."""

import shlex
from dataclasses import replace

from crucible.core.launch import recipe
from crucible.core.launch_script import imagined, script
from crucible.model.ids import TaskId
from crucible.model.policy import Policy
from crucible.model.secret import SecretUse
from crucible.model.spec import Framework, JobSpec, Resources
from making import NOW, a_job, a_task

SPEC = JobSpec(framework=Framework.PYTORCH_DDP, entrypoint="train.py", resources=Resources(nodes=2, gpus=4))
SOURCES = {"__main__.py": "print('$HOME `id`')\n", "crucible_agent/__init__.py": ""}


def written(spec: JobSpec, name: str = "a job") -> str:
    job = replace(a_job(), name=name)
    attempt = imagined(job, spec, TaskId("t"), NOW)
    launches = [recipe(job, a_task(), spec, attempt, rank, "file:///c", False, Policy()) for rank in attempt.ranks]
    return script(job, launches, SOURCES, is_placed=False)


def test_a_job_without_machines_has_placeholders_and_says_so() -> None:
    text = written(SPEC)
    assert "# The job has no machines yet: put the addresses of yours in place of node-0, node-1 …" in text
    assert "--nnodes=2 --node-rank=1 --master-addr=node-0 --master-port=29500" in text
    assert "export CUDA_VISIBLE_DEVICES=0,1\n" in text and "--nproc-per-node=2" in text


def test_words_of_the_user_are_quoted() -> None:
    nasty = "'; rm -rf / #\n$(id)"
    text = written(replace(SPEC, args=(nasty,), env={"SAID": nasty, "not a name; id": "x"}), name="n\nid #")
    assert f"export SAID={shlex.quote(nasty)}" in text
    assert f"train.py {shlex.quote(nasty)}" in text
    assert "# How Crucible starts the job n?id # (" in text
    assert "# the shell cannot set not a name; id" in text


def test_what_looks_like_a_secret_is_asked_for() -> None:
    text = written(replace(SPEC, env={"WANDB_API_KEY": "abc123", "HF_TOKEN": "abc123", "KEYBOARD": "fine"}))
    assert "abc123" not in text and "export KEYBOARD=fine" in text
    assert 'export HF_TOKEN="${HF_TOKEN:?it looks like a secret, and is not written here}"' in text


def test_a_launcher_of_ours_comes_along_in_a_here_document() -> None:
    text = written(replace(SPEC, framework=Framework.HOROVOD))
    assert "cat > .crucible-launch/__main__.py <<'CRUCIBLE_END_OF_FILE'\nprint('$HOME `id`')\nCRUCIBLE_END" in text
    assert "exec python .crucible-launch --launch horovod --master=node-0:29500" in text
    assert ".crucible-launch" not in written(SPEC)


def test_one_rank_needs_no_argument() -> None:
    assert written(JobSpec(command=("echo", "hi"))).endswith("  exec echo hi\n}\n\nrank_0\n")


def test_secrets_are_asked_for_by_name() -> None:
    uses = (
        SecretUse(name="HF", env="HF_TOKEN"),
        SecretUse(name="GCP", file="gcp/key.json", env="GCP_FILE"),
        SecretUse(name="GCP", file="raw"),
    )
    text = written(replace(SPEC, secrets=uses))
    assert 'export HF_TOKEN="${HF_TOKEN:?the secret HF}"' in text
    assert 'export CRUCIBLE_SECRETS="${CRUCIBLE_SECRETS:?a folder with the files of the secrets}"' in text
    assert 'export GCP_FILE="$CRUCIBLE_SECRETS/gcp/key.json"' in text and 'test -f "$CRUCIBLE_SECRETS/raw"' in text
