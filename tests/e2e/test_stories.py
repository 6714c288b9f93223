"""What `make run` tells is so: it ends well, with the figures that the README shows."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
# After the installation a newcomer waits no longer; a loaded machine may need more than its usual minute.
WITHIN_S = 180


def test_a_training_that_loses_two_spot_machines_ends_with_the_same_loss_and_the_clouds_own_bill(
    tmp_path: Path,
) -> None:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "CRUCIBLE_"))}
    done = subprocess.run(
        [sys.executable, "-m", "examples.spot.story"],
        cwd=ROOT,
        env={**inherited, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    said = re.search(r"(\d+) attempts; final loss (\S+), undisturbed (\S+)\.", done.stdout)
    assert said and int(said[1]) >= 3 and said[2] == said[3]
    ledger, invoice = (re.search(rf"{name} +([\d,]+) µ\$", done.stdout) for name in ("ledger", "invoice"))
    assert ledger and invoice and ledger[1] == invoice[1] != "0"
    assert re.search(r"\d% saved", done.stdout)
    assert list(tmp_path.iterdir()) == [], "it leaves nothing in the home folder"
