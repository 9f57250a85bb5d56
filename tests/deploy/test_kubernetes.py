"""The manifests against Kubernetes' own schemas, and what those schemas do not see."""

from __future__ import annotations

import re
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml

from .conftest import ROOT
from .test_compose import EXAMPLE, settings_class, variables

FOLDER = ROOT / "deploy" / "kubernetes"
MANIFESTS: list[dict[str, Any]] = [
    document for path in sorted(FOLDER.glob("*.yaml")) for document in yaml.safe_load_all(path.read_text())
]
NAMES = [f"{m['kind']}/{m['metadata']['name']}" for m in MANIFESTS]
PODS = {
    name: m["spec"]["template"]["spec"]
    for name, m in zip(NAMES, MANIFESTS, strict=True)
    if "template" in m.get("spec", {})
}
SERVICES = [name.removeprefix("Deployment/") for name in PODS if name.startswith("Deployment/")]
_QUANTITY = re.compile(r"\d+(\.\d+)?(m|Ki|Mi|Gi|Ti)?")


@pytest.mark.parametrize("manifest", MANIFESTS, ids=NAMES)
def test_a_manifest_is_valid(manifest: dict[str, Any]) -> None:
    kubernetes_validate.validate(manifest, "1.32", strict=True)
    if manifest["kind"] != "Namespace":
        assert manifest["metadata"]["namespace"] == "oarlock"


def test_what_the_schemas_do_not_see() -> None:
    assert PODS["Job/streams"]["restartPolicy"] in {"OnFailure", "Never"}
    for name, pod in PODS.items():
        for container in pod["containers"]:
            amounts = [str(a) for kind in container["resources"].values() for a in kind.values()]
            assert amounts and all(_QUANTITY.fullmatch(a) for a in amounts), (name, amounts)
            named = {mount["name"] for mount in container.get("volumeMounts", [])}
            claims = [] if name != "StatefulSet/nats" else ["data"]
            assert named == {v["name"] for v in pod.get("volumes", [])} | set(claims), name


@pytest.mark.parametrize("name", PODS)
def test_a_pod_meets_the_restricted_standard(name: str) -> None:
    pod = PODS[name]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["automountServiceAccountToken"] is False
    for container in pod["containers"]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }


@pytest.mark.parametrize("service", SERVICES)
def test_the_environment_is_what_the_settings_read(service: str) -> None:
    (container,) = PODS[f"Deployment/{service}"]["containers"]
    given = {entry["name"]: entry for entry in container["env"]}
    assert given.keys() <= variables(settings_class(service)).keys()
    assert given["OARLOCK_NATS_USER"]["value"] == service
    secrets = [e["valueFrom"]["secretKeyRef"] for e in given.values() if "valueFrom" in e]
    assert secrets
    assert all(secret["name"] == "oarlock" and secret["key"] in EXAMPLE for secret in secrets)


def test_selectors_find_their_pods() -> None:
    labels = [m["spec"]["template"]["metadata"]["labels"] for m in MANIFESTS if "template" in m.get("spec", {})]
    for manifest in MANIFESTS:
        if manifest["kind"] == "Service":
            assert manifest["spec"]["selector"] in labels
        if manifest["kind"] in {"Deployment", "StatefulSet"}:
            spec = manifest["spec"]
            assert spec["selector"]["matchLabels"] == spec["template"]["metadata"]["labels"]
