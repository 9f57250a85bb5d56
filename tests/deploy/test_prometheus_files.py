"""The scrape configuration and the alert rules, by Prometheus' own tool."""

from __future__ import annotations

import subprocess

import pytest
import yaml

from .conftest import ROOT

FOLDER = ROOT / "deploy" / "prometheus"

pytestmark = pytest.mark.prometheus


def run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def alerts() -> set[str]:
    groups = yaml.safe_load((FOLDER / "alerts.yml").read_text())["groups"]
    return {rule["alert"] for group in groups for rule in group["rules"]}


def test_the_configuration_is_valid(promtool: str) -> None:
    run(promtool, "check", "config", str(FOLDER / "prometheus.yml"))


def test_the_alerts_fire_when_they_should_and_only_then(promtool: str) -> None:
    run(promtool, "test", "rules", str(FOLDER / "alerts_test.yml"))


def test_every_alert_has_a_test_that_fires_it_and_one_that_does_not() -> None:
    cases = [case for test in _tests() for case in test["alert_rule_test"]]
    assert {case["alertname"] for case in cases if case["exp_alerts"]} == alerts()
    assert {case["alertname"] for case in cases if not case["exp_alerts"]} == alerts()


def test_operations_say_what_to_do_for_every_alert() -> None:
    manual = (ROOT / "docs" / "operations.md").read_text()
    assert [name for name in sorted(alerts()) if f"`{name}`" not in manual] == []


def _tests() -> list[dict[str, list[dict[str, object]]]]:
    document = yaml.safe_load((FOLDER / "alerts_test.yml").read_text())
    tests: list[dict[str, list[dict[str, object]]]] = document["tests"]
    return tests
