"""A job with an image through the command line, the server and a machine of this computer: podman runs it."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_process import carriers
from containers import IMAGE, Podman
from person import Person

ROOT = Path(__file__).parents[2]
TRAINING = "localhost/crucible-training-test:1"


@pytest.fixture
def person(tmp_path: Path, podman: Podman) -> Iterator[Person]:
    someone = Person(tmp_path)
    someone.env |= podman.env
    yield someone
    someone.leave()


def job(**fields: object) -> str:
    spec = {"name": "boxed", "image": IMAGE, "container": {"pull": "never"}, "retry": {"limit": 0}, **fields}
    return json.dumps({"job": spec})


def test_a_job_runs_in_its_image_with_its_volumes_and_leaves_nothing(
    person: Person, podman: Podman, tmp_path: Path
) -> None:
    (tmp_path / "inputs").mkdir()
    (tmp_path / "inputs" / "words").write_text("of the machine")
    (person.folder / "code").mkdir()
    (person.folder / "code" / "train.py").write_text(
        "import os, sys; print(open('/data/words').read(), os.environ['SECRET'], sys.prefix)"
    )
    spec = job(
        entrypoint="train.py",
        code="code",
        setup=["echo prepared"],
        env={"SECRET": 'a "canary"'},
        volumes={"/data": str(tmp_path / "inputs")},
        resources={"cpus": 1, "cpu_memory": "256MB"},
    )
    ran = person.run("submit", person.write("job.yaml", spec))
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines() == ["prepared", 'of the machine a "canary" /usr']
    assert podman.containers() == []


LEAVE = (
    "import os, pathlib; out = pathlib.Path(os.environ['CRUCIBLE_OUTPUT']); (out / 'm').mkdir();"
    "(out / 'm/answer').write_text('42'); (out / 'last').symlink_to('m/answer')"
)
READ = """
import os, pathlib
made = pathlib.Path(os.environ['CRUCIBLE_INPUTS']) / 'made'
print((made / 'last').read_text())
try:
    (made / 'x').touch()
except OSError:
    print('nobody writes there')
"""


@pytest.mark.parametrize("user", [None, "1234:1234"])
def test_what_a_container_leaves_another_one_reads(person: Person, podman: Podman, user: str | None) -> None:
    options = {"pull": "never", **({} if user is None else {"user": user})}
    spec = job(command=["python3", "-c", LEAVE], container=options)
    ran = person.run("submit", person.write("job.yaml", spec))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    made = person.run("ps", "-a", "-q").stdout.split()[0]
    spec = job(command=["python3", "-c", READ], container=options, inputs={"made": f"output://{made}"})
    ran = person.run("submit", person.write("job.yaml", spec))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.splitlines()[-2:] == ["42", "nobody writes there"], ran.stdout
    assert podman.containers() == []


def test_an_image_that_is_not_there_fails_the_job_with_the_reason(person: Person) -> None:
    ran = person.run("submit", person.write("job.yaml", job(command="true", image="localhost/no-such:1")))
    assert ran.returncode != 0
    words = "the image localhost/no-such:1 is not on the machine, and container.pull is never"
    job_id = person.run("ps", "-a", "-q").stdout.split()[0]
    assert words in person.run("why", job_id).stdout


def test_a_cancelled_job_leaves_no_container(person: Person, podman: Podman) -> None:
    ran = person.run("submit", "-d", person.write("job.yaml", job(command="echo up; sleep 600")))
    assert ran.returncode == 0, ran.stderr
    job_id = ran.stdout.split()[-1]
    person.until("the container is up", lambda: podman.containers() != [])
    assert person.run("cancel", job_id).returncode == 0
    assert person.run("wait", job_id, "--timeout", "60").returncode != 0
    assert podman.containers() == []


PLUGIN = """
import os
class Words:
    def __init__(self, config):
        self.config = config
    def loaders(self, dataset, config):
        return dataset, None
    def train(self, train_loader, val_loader, callbacks):
        print(self.config['text'], train_loader, 'as', os.environ['JOB_ID'])
"""


@pytest.fixture(scope="module")
def training_image(podman_session: Podman) -> Iterator[str]:
    """Built by its recipe, on the image of this computer instead of one from a registry."""
    recipe = str(ROOT / "deploy" / "training" / "Containerfile")
    podman_session(
        *("build", "--quiet", "--network", "host", "--isolation", "chroot", "--build-arg", f"BASE={IMAGE}"),
        *("--tag", TRAINING, "--file", recipe, str(ROOT)),
    )
    yield TRAINING
    podman_session("rmi", "--force", TRAINING)


def test_the_training_image_trains_a_plugin_by_its_environment(
    training_image: str, podman: Podman, tmp_path: Path
) -> None:
    (tmp_path / "words.py").write_text(PLUGIN)
    contract = {"JOB_ID": "job-7", "MODEL_PLUGIN": "words:Words", "CONFIG": '{"text": "hello"}', "DATASET": "/data"}
    said = podman(
        *("run", "--rm", "--network", "host", "--volume", f"{tmp_path}:/workspace"),
        *(word for name, value in contract.items() for word in ("--env", f"{name}={value}")),
        training_image,
    )
    assert said.splitlines() == [
        "Starting training job job-7 with words:Words",
        "hello /data as job-7",
        "Training completed",
    ]
    assert podman("run", "--rm", "--network", "host", training_image, "cat", "/opt/crucible/entrypoint.sh") != ""


def test_a_model_plugin_is_trained_in_the_training_image(training_image: str, person: Person) -> None:
    (person.folder / "code").mkdir()
    (person.folder / "code" / "words.py").write_text(PLUGIN)
    spec = job(image=training_image, code="code", model={"plugin": "words:Words", "config": {"text": "hello"}})
    ran = person.run("submit", person.write("job.yaml", spec))
    assert ran.returncode == 0, ran.stderr
    assert "Training completed" in ran.stdout and "hello" in ran.stdout


def test_nothing_of_a_container_survives_a_machine_whose_agent_is_killed(person: Person, podman: Podman) -> None:
    """And the job goes on in a container of the next machine: losing one is nobody's failure."""
    person.write("job.yaml", job(command="echo up; sleep 600"))
    job_id = person.run("submit", "-d", "-q", "job.yaml").stdout.strip()
    person.until("the container is up", lambda: podman.containers() != [])
    (first,) = podman.containers()
    (lock,) = (person.data / "local" / "machines").glob("local-*/lock")
    os.kill(int(lock.read_text()), signal.SIGKILL)
    person.until("the next container is up", lambda: podman.containers() not in ([], [first]))
    person.until("the first is gone", lambda: first not in podman.containers())
    assert in_processes(first.removeprefix("crucible-").rpartition("-")[0]) == []
    person.run("cancel", job_id)
    person.run("wait", job_id, "--timeout", "90")
    assert podman.containers() == []


def in_processes(attempt: str) -> list[int]:
    return carriers("CRUCIBLE_RANK_ID", f"{attempt}/0")
