"""What a server may be told, where it is read."""

import pytest
from click.testing import CliRunner

from crucible.main import server_command
from crucible.server_options import LABEL_LENGTH


def test_a_label_that_fits_no_corner_of_a_page_is_refused_before_anything_starts() -> None:
    ran = CliRunner().invoke(server_command, ["--label", "x" * (LABEL_LENGTH + 1)])
    assert ran.exit_code == 2
    assert f"at most {LABEL_LENGTH} characters" in ran.output


@pytest.mark.parametrize("said", ["", " , "])
def test_a_server_without_any_provider_is_refused(said: str) -> None:
    ran = CliRunner().invoke(server_command, ["--provider", said])
    assert ran.exit_code == 2
    assert "name at least one provider" in ran.output
