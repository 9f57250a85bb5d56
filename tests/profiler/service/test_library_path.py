"""A wrong library path is said at once, with what to give instead; advice on unknowns matches whole words."""

from __future__ import annotations

from pathlib import Path

import pytest

from oarlock.bundle import BundleError
from oarlock.local import explain_path
from oarlock_profiler.adapters.sources import wrong_library_path
from oarlock_profiler.core.settling import settled_by
from oarlock_profiler.settings import ProfilerSettings


def test_where_no_module_can_be_found(tmp_path: Path) -> None:
    package = tmp_path / "site-packages" / "vision"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    wheel = tmp_path / "vision-1.0.whl"
    wheel.write_bytes(b"")
    empty = tmp_path / "empty"
    empty.mkdir()
    assert wrong_library_path(tmp_path / "site-packages") is None
    assert "does not exist" in str(wrong_library_path(tmp_path / "nowhere"))
    assert str(wrong_library_path(package)).endswith(f"give the folder that holds it: {tmp_path / 'site-packages'}")
    assert str(wrong_library_path(tmp_path)).endswith(f"perhaps {tmp_path / 'site-packages'} is meant")
    assert "unpack it" in str(wrong_library_path(wheel))
    assert "holds no Python module" in str(wrong_library_path(empty))


def test_the_command_and_the_service_refuse_it(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("x = 1\n")
    with pytest.raises(BundleError, match=r"--library-path: .* does not exist"):
        explain_path(script, library_paths=[tmp_path / "nowhere"])
    with pytest.raises(ValueError, match=r"OARLOCK_LIBRARY_PATH: .* does not exist"):
        ProfilerSettings(library_path=str(tmp_path / "nowhere")).library_paths()


@pytest.mark.parametrize(
    "why", ["the update has no shape", "a candidate of the runtime", "what validates it at times_two"]
)
def test_advice_matches_whole_words(why: str) -> None:
    assert "it is decided when the script runs" not in settled_by("value", why, "main.py:3")


def test_advice_on_time_and_chance() -> None:
    assert "it is decided when the script runs" in settled_by("value", "a random number", "main.py:3")
