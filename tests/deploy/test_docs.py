"""The documentation says what the sources say."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import get_args

import pytest

from oarlock.up import SERVICES
from oarlock_schemas.events import Outcome

from .conftest import ROOT
from .test_compose import EXAMPLE, settings_class, variables

DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.glob("*.md"), *ROOT.glob("*.md"), *(ROOT / "deploy").rglob("*.md")])
SOURCES = [
    path
    for folder in ("schemas", "accelerators", "runtime", "services", "client")
    for path in sorted((ROOT / folder).rglob("*.py"))
]
_EXCEPTIONS = {
    "Exception",
    "ValueError",
    "LookupError",
    "RuntimeError",
    "OarlockError",
    "PermanentError",
    "TemporaryError",
}
_INSIDE = {"CannotStart", "RuntimeUnavailable", "CannotRead", "ToolError", "Taken"}
"""Raised and caught within one service; what becomes of them has a code of its own."""


def section(title: str) -> str:
    """The text of one section of errors.md."""
    text = (DOCS / "errors.md").read_text()
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, title
    return found[1]


def documented(title: str) -> set[str]:
    """What the first column of a section's table names."""
    return set(re.findall(r"^\| `?([A-Za-z0-9_]+)`? \|", section(title), re.MULTILINE))


@cache
def tree(path: Path) -> list[ast.AST]:
    return list(ast.walk(ast.parse(path.read_text())))


def calls(*names: str) -> Iterator[ast.Call]:
    """Every call of a function or class of one of these names."""
    for path in SOURCES:
        for node in tree(path):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", None)) in names:
                yield node


def words(nodes: Iterator[ast.expr]) -> set[str]:
    return {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def test_every_code_of_a_rejection_is_explained() -> None:
    used = words(call.args[0] for call in calls("CannotRead") if call.args)
    used |= words(call.args[2] for call in calls("_reject", "_rejected") if len(call.args) > 2)
    used |= words(k.value for call in calls("TaskRejected") for k in call.keywords if k.arg == "code")
    # The reader's child answers with a code, which its parent raises.
    answers = ROOT / "services/profiler/oarlock_profiler/adapters/isolated.py"
    for node in tree(answers):
        if isinstance(node, ast.Dict):
            used |= words(
                v for k, v in zip(node.keys, node.values, strict=True) if words(iter([k] if k else [])) == {"code"}
            )
    assert {"bad_git", "no_device_fits", "invalid_task", "nothing_to_read"} <= used
    assert used - documented("A task was rejected") == set()


def test_every_reason_is_explained() -> None:
    filters = ROOT / "services/matcher/oarlock_matcher/core/filters"
    used = {
        code for path in filters.glob("*.py") for code in re.findall(r'^    code = "(\w+)"', path.read_text(), re.M)
    }
    used |= words(call.args[0] for call in calls("Reason") if call.args) - {
        "placed",
        "unknown",
        "invalid",
        "dependency_failed",
    }
    assert {"memory_too_small", "turn"} <= used
    assert used - documented("Why a task waits, or a device was not taken") == set()


def test_every_outcome_is_explained() -> None:
    assert documented("How a run ended") - {"outcome"} == set(get_args(Outcome))


def test_every_status_is_explained() -> None:
    gateway = [
        call.args[position].value  # type: ignore[attr-defined]
        for name, position in (("HTTPException", 0), ("JSONResponse", 1))
        for call in calls(name)
        if len(call.args) > position and isinstance(call.args[position], ast.Constant)
    ]
    assert {401, 404, 503} <= set(gateway)
    assert {str(status) for status in gateway} - documented("HTTP") == set()


def test_every_exception_of_the_packages_is_explained() -> None:
    used = set()
    for path in SOURCES:
        if "services" in path.parts:
            continue
        for node in tree(path):
            bases = {getattr(base, "id", "") for base in node.bases} if isinstance(node, ast.ClassDef) else set()
            if isinstance(node, ast.ClassDef) and bases & _EXCEPTIONS and not node.name.startswith("_"):
                used.add(node.name)
    assert {"BusUnavailable", "InvalidMessage", "BundleError"} <= used
    assert used - _INSIDE - documented("Exceptions") == set()


def test_every_kind_of_dead_letter_is_explained() -> None:
    text = section("Dead letters")
    metric = (ROOT / "runtime" / "oarlock_runtime" / "metrics.py").read_text()
    kinds = re.search(r"by kind of error \(([^)]*)\)", re.sub(r'"\s+"', "", metric))
    assert kinds
    assert [kind for kind in re.findall(r"\w+", kinds[1]) if f"`{kind}`" not in text] == []


def test_the_events_are_those_of_the_catalogue() -> None:
    done = subprocess.run(
        [sys.executable, str(DOCS / "events.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{done.stdout}{done.stderr}\nrun: python docs/events.py"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        place = (page.parent / name).resolve() if name else page
        if not place.exists() or (anchor and place.suffix == ".md" and anchor not in _anchors(place)):
            broken.append(target)
    assert broken == []


def _anchors(page: Path) -> set[str]:
    """The headings of a page as links name them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_operations_name_only_settings_that_exist() -> None:
    known = {name for service in SERVICES for name in variables(settings_class(service))} | set(EXAMPLE)
    known |= {"OARLOCK_NATS_IMAGE", "OARLOCK_REQUIRE", "OARLOCK_GATEWAY_ADDRESS", "OARLOCK_DOCKER_HOME"}
    for page in (DOCS / "operations.md", DOCS / "errors.md"):
        named = set(re.findall(r"\bOARLOCK_[A-Z_]+\b", page.read_text()))
        assert named - known == set(), page.name
