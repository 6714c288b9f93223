"""The file of clusters: what is meant, and what is said about the rest."""

from datetime import timedelta
from pathlib import Path

import pytest

from crucible.model.errors import InvalidRequest
from crucible.providers.slurm.settings import VARIABLE, read_clusters

WHOLE = """\
clusters:
  - name: lake
    login: ann@login.example:2222
    partitions: [gpu]
    account: vision
    time_limit: 12h
    queue_limit: 0
    workdir: /scratch/ann
    options: [--constraint=nvlink]
    cost_per_gpu_hour: 1.5
    gpu_names: {a100: A100-80GB}
    gpu_memory_gib: {a100: 80}
  - {name: pond, url: "http://pond:6820", token_file: ~/jwt, workdir: /shared/crucible}
"""


def written(folder: Path, text: str) -> dict[str, str]:
    path = folder / "clusters.yaml"
    path.write_text(text)
    return {VARIABLE: str(path)}


def test_clusters_are_read_whole(tmp_path: Path) -> None:
    lake, pond = read_clusters(written(tmp_path, WHOLE))
    assert (lake.login, lake.time_limit, lake.queues) == ("ann@login.example:2222", timedelta(hours=12), False)
    assert (lake.options, lake.gpu_names["a100"]) == (("--constraint=nvlink",), "A100-80GB")
    assert (pond.url, pond.queue_limit, pond.python) == ("http://pond:6820", timedelta(hours=24), "python3")


@pytest.mark.parametrize(
    ("cluster", "said"),
    [
        ("{login: here}", "needs a `name`"),
        ("{name: a, login: here, speed: 9}", "`speed` is not known"),
        ("{name: a}", "one of them"),
        ("{name: a, login: here, url: 'http://b'}", "one of them"),
        ("{name: a, url: 'http://b', workdir: /w}", "`token_file`"),
        ("{name: a, url: 'http://b', token_file: t}", "absolute path"),
        ("{name: a, login: 'x; rm -rf /'}", "`login`"),
        ("{name: a, login: here, time_limit: soon}", "30m, 24h or 2d"),
        ("{name: a, login: here, options: [--requeue]}", "--requeue"),
        ("{name: a, login: here, options: [-N9]}", "-N9"),
        ("{name: a, login: here, workdir: w}", "`workdir`"),
        ("{name: a, login: here, cost_per_gpu_hour: -1}", "`cost_per_gpu_hour`"),
        ("{name: a, login: here, python: -c}", "`python`"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_cluster_and_field(tmp_path: Path, cluster: str, said: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        read_clusters(written(tmp_path, f"clusters: [{cluster}]"))
    assert said in caught.value.message and "cluster 1" in caught.value.message


@pytest.mark.parametrize("text", ["", "[]", "clusters: {}", "clusters: []", "{{{"])
def test_a_file_without_clusters_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(InvalidRequest, match=r"clusters\.yaml"):
        read_clusters(written(tmp_path, text))


def test_a_server_without_the_file_is_told_which_variable_to_set(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match=VARIABLE):
        read_clusters({})
    with pytest.raises(InvalidRequest, match="cannot be read"):
        read_clusters({VARIABLE: str(tmp_path / "absent")})
    with pytest.raises(InvalidRequest, match="one name"):
        read_clusters(written(tmp_path, "clusters: [{name: a, login: here}, {name: a, login: here}]"))
