"""Horovod for real, in trouble. On several machines, and TensorFlow: tests/e2e/test_training_on_hosts.py."""

from frameworks import Shop, python_of


def test_a_worker_of_horovod_that_breaks_ends_the_job_with_its_words(market: Shop) -> None:
    code = "import os, sys; sys.exit('out of luck' if os.environ['RANK'] == '1' else 0)"
    given = {"framework": "horovod", "python": python_of("horovod"), "command": ["python", "-c", code]}
    running = market.submit(name="horovod-breaks", execution={"processes_per_node": 2}, **given)
    try:
        running.finish()
    except AssertionError:
        pass
    view = running.view()
    assert view["status"] == "failed" and "out of luck | crucible: worker 1 ended with 1" in view["reason"]
