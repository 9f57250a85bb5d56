"""The document of the bucket `policy` (key `matcher`) as the core's settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import oarlock_schemas as schemas
from oarlock_matcher.adapters.fleet_kinds import every_kind_meant
from oarlock_matcher.core.policies.learned_weights import weights_of
from oarlock_matcher.core.policies.registry import BUILDERS
from oarlock_matcher.core.policy_settings import LearnedWeights, PolicySettings, Quota, Window
from oarlock_runtime import get_logger
from oarlock_schemas import InvalidMessage, read

log = get_logger("matcher")


def policy_of(document: Mapping[str, Any]) -> PolicySettings:
    """The settings that ``document`` describes: a ``preset``, with ``weights``, ``quotas``, ``windows`` and plain
    fields over it.

    A field that is unknown or has a wrong value is left as it was and logged: one typo must not stop placement.
    """
    settings = PolicySettings()
    if isinstance(preset := document.get("preset"), str):
        try:
            settings = settings.with_preset(preset)
        except KeyError as error:
            log.warning("policy preset ignored", why=str(error))
    changes: dict[str, Any] = {}
    plain = {f.name: getattr(settings, f.name) for f in fields(settings)}
    for name, value in document.items():
        if name == "weights" and isinstance(value, Mapping):
            changes["weights"] = _changed(settings.weights, value, "weights")
        elif name == "quotas" and isinstance(value, Mapping):
            quotas = {k: _changed(Quota(), v, "quotas") for k, v in value.items() if isinstance(v, Mapping)}
            changes["quotas"] = quotas
        elif name == "windows" and isinstance(value, Mapping):
            changes["windows"] = _windows(value)
        elif name == "default_quota" and isinstance(value, Mapping):
            changes["default_quota"] = _changed(Quota(), value, "default_quota")
        elif name == "learned" and isinstance(value, Mapping):
            changes["learned"] = _learned(value)
        elif name == "shadow_policy" and value not in ("", *BUILDERS):
            log.warning("policy field ignored", field=name, value=repr(value)[:100])
        elif name in plain and _same_type(plain[name], value):
            changes[name] = type(plain[name])(value)
        elif name != "preset":
            log.warning("policy field ignored", field=name, value=repr(value)[:100])
    return replace(settings, **changes)


def _windows(values: Mapping[str, Any]) -> tuple[Window, ...]:
    """Reservations and maintenance by name, in the order of their names; what is no window is left out."""
    found: list[Window] = []
    for name, value in sorted(values.items()):
        if value is None:
            continue
        try:
            window, _ = read(schemas.Window, value if isinstance(value, Mapping) else "")
        except InvalidMessage as error:
            log.warning("policy field ignored", field=f"windows.{name}", value=str(error)[:300])
            continue
        found.append(
            Window(
                name=name,
                begins=window.begins,
                ends=window.ends,
                owner=window.owner,
                devices=frozenset(window.devices),
                sites=frozenset(window.sites),
                nodes=frozenset(window.nodes),
                kinds=every_kind_meant(window.kinds),
                reason=window.reason or "",
            )
        )
    return tuple(found)


def _learned(document: Mapping[str, Any]) -> LearnedWeights | None:
    """Weights of the learned policy; those that this release ships where these cannot be used."""
    try:
        return weights_of(document)
    except ValueError as error:
        log.warning("policy field ignored", field="learned", value=str(error)[:300])
        return None


def _changed(start: Any, values: Mapping[str, Any], where: str) -> Any:
    known = {f.name for f in fields(start)}
    good = {
        k: v
        for k, v in values.items()
        if k in known and isinstance(v, int | float) and not isinstance(v, bool) and 0 <= v < 1e18
    }
    for name in values.keys() - good.keys():
        log.warning("policy field ignored", field=f"{where}.{name}", value=repr(values[name])[:100])
    return replace(start, **good)


def _same_type(default: Any, value: Any) -> bool:
    if isinstance(default, bool) or isinstance(value, bool):
        return isinstance(default, bool) and isinstance(value, bool)
    if isinstance(default, float):
        return isinstance(value, int | float) and 0 <= value < 1e18
    if isinstance(default, int):
        return isinstance(value, int) and 0 <= value < 2**62
    return isinstance(default, str) and isinstance(value, str)
