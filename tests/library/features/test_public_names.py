"""What `whitewater.features` offers is there, and costs nothing until it is asked for."""

import subprocess
import sys

import pytest

from whitewater import features


@pytest.mark.parametrize("name", features.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(features, name).__name__ == name


def test_the_package_itself_imports_no_library() -> None:
    program = "import sys, whitewater.features; print([name for name in ('numpy', 'pyarrow') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
