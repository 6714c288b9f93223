from pathlib import Path

import pytest

from gcs_front import Google


@pytest.fixture
def google(tmp_path: Path) -> Google:
    return Google(tmp_path)
