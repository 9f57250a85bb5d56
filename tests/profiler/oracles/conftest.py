"""The oracle environment. In CI it must be there; on a developer's machine without it, these tests say how to make it."""

import os

import pytest
from benchmarks.oracles import environment


@pytest.fixture(scope="session")
def oracles() -> list[str]:
    """The library path of the real frameworks' environment."""
    if not environment.exists():
        message = "no oracle environment: python -m benchmarks.oracles.environment makes one (or set OARLOCK_ORACLES)"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    return environment.library_paths()
