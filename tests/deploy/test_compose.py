"""compose.yaml says nothing that the services, the server and Prometheus would not understand."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from oarlock.up import SERVICES
from oarlock_runtime import RuntimeSettings

from .conftest import ROOT

DEPLOY = ROOT / "deploy"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
EXAMPLE = dict(
    line.split("=", 1) for line in (DEPLOY / ".env.example").read_text().splitlines() if line and line[0] != "#"
)
_VARIABLE = re.compile(r"\$\{(\w+)(?::([?-])([^}]*))?\}")


def filled(text: str) -> str:
    """``text`` with variables as compose fills them in: what .env says, else the default; a `:?` must be in .env."""

    def value(match: re.Match[str]) -> str:
        name, kind, rest = match.groups()
        if name in EXAMPLE:
            return EXAMPLE[name] or f"value-of-{name}"
        assert kind == "-", f"{name} has no default and is not in .env.example"
        return str(rest)

    return _VARIABLE.sub(value, text)


def environment(service: str) -> dict[str, str]:
    given: dict[str, str | None] = COMPOSE["services"][service]["environment"]
    return {name: filled(value) for name, value in given.items() if value is not None}


def settings_class(service: str) -> type[RuntimeSettings]:
    module = importlib.import_module(f"oarlock_{service}.settings")
    (found,) = (
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, RuntimeSettings) and value is not RuntimeSettings
    )
    return found


def variables(settings: type[RuntimeSettings]) -> dict[str, str]:
    """The fields of a settings class by environment variable."""
    return {
        str(field.validation_alias or f"OARLOCK_{name.upper()}"): name for name, field in settings.model_fields.items()
    }


def test_every_service_of_the_pipeline_is_there() -> None:
    assert set(SERVICES) < set(COMPOSE["services"])
    for service in SERVICES:
        assert COMPOSE["services"][service]["build"]["args"] == {"SERVICE": service}


@pytest.mark.parametrize("service", SERVICES)
def test_the_environment_is_what_the_settings_read(service: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given = environment(service)
    fields = variables(settings_class(service))
    assert sorted(given.keys() - fields.keys()) == []
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    settings = settings_class(service)()
    for name, value in given.items():
        read = getattr(settings, fields[name])
        assert str(read.get_secret_value() if hasattr(read, "get_secret_value") else read) == value, name


@pytest.mark.parametrize("service", [*SERVICES, "streams"])
def test_every_service_is_a_user_of_the_server_with_its_own_password(service: str) -> None:
    given = COMPOSE["services"][service]["environment"]
    user = given["OARLOCK_NATS_USER"]
    assert user == ("admin" if service == "streams" else service)
    assert given["OARLOCK_NATS_PASSWORD"] == f"${{OARLOCK_{user.upper()}_PASSWORD}}"


def test_the_server_gets_the_password_of_each_of_its_users() -> None:
    wanted = set(re.findall(r"password: \$(\w+)", (DEPLOY / "nats" / "users.conf").read_text()))
    assert wanted == set(COMPOSE["services"]["nats"]["environment"])


def test_no_variable_is_forgotten_and_no_secret_is_committed() -> None:
    text = "".join(path.read_text() for path in DEPLOY.glob("compose*.yaml"))
    code = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    assert {name for name, kind, _ in _VARIABLE.findall(code) if kind != "-"} == set(EXAMPLE)
    assert {name: value for name, value in EXAMPLE.items() if re.search("PASSWORD|TOKEN", name) and value} == {}
    assert ".env" in (DEPLOY / ".gitignore").read_text().split()


def test_what_is_mounted_is_there() -> None:
    mounts = [m for service in COMPOSE["services"].values() for m in service.get("volumes", []) if m.startswith("./")]
    assert mounts
    assert [m for m in mounts if not (DEPLOY / Path(m.split(":")[0])).exists()] == []


def test_named_volumes_and_dependencies_are_declared() -> None:
    services = COMPOSE["services"]
    for service in services.values():
        for mount in service.get("volumes", []):
            source = mount.split(":")[0]
            assert source[0] in "./$" or source in COMPOSE["volumes"], mount
        assert set(service.get("depends_on", [])) <= set(services)
    nvidia = yaml.safe_load((DEPLOY / "compose.nvidia.yaml").read_text())
    assert set(nvidia["services"]) <= set(services)


def test_prometheus_asks_every_service_on_the_port_of_the_image() -> None:
    (job,) = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text())["scrape_configs"]
    (lookup,) = job["dns_sd_configs"]
    assert set(lookup["names"]) == set(SERVICES)
    assert f"OARLOCK_HTTP_PORT={lookup['port']}" in (DEPLOY / "Dockerfile").read_text()


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_that_keeps_files_has_a_place_for_them(service: str) -> None:
    keeps = "data_dir" in settings_class(service).model_fields
    targets = [mount.split(":")[1] for mount in COMPOSE["services"][service].get("volumes", [])]
    # The image's own /data is read-only there, and would be lost.
    assert ("/data" in targets) == keeps


def test_launcher_and_telemetry_mean_the_same_machine() -> None:
    launcher, telemetry = (COMPOSE["services"][name] for name in ("launcher", "telemetry"))
    assert launcher["environment"].keys() & {"OARLOCK_SITE", "OARLOCK_NODE"} == {"OARLOCK_SITE", "OARLOCK_NODE"}
    for name in ("OARLOCK_SITE", "OARLOCK_NODE", "OARLOCK_RUNTIME"):
        assert launcher["environment"][name] == telemetry["environment"][name]
    # A device without an id of its own is named after host name and machine id (oarlock_accelerators.machine).
    assert filled(launcher["hostname"]) == filled(telemetry["hostname"])
    assert all("/etc/machine-id:/etc/machine-id:ro" in entry["volumes"] for entry in (launcher, telemetry))


def test_only_this_machine_reaches_what_has_no_password_of_its_own() -> None:
    published = [p for name, s in COMPOSE["services"].items() if name != "gateway" for p in s.get("ports", [])]
    assert published and all(port.startswith("127.0.0.1:") for port in published)


@pytest.mark.parametrize("service", [*SERVICES, "streams", "nats"])
def test_services_have_no_more_rights_than_they_need(service: str) -> None:
    entry = COMPOSE["services"][service]
    assert entry["cap_drop"] == ["ALL"]
    assert entry["security_opt"] == ["no-new-privileges:true"]
    assert entry["read_only"] is True
    assert "privileged" not in entry
