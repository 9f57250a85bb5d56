"""Images of deploy/Dockerfile, built without a registry and without an index."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import docker

from .conftest import ROOT, find

BASE = "oarlock-test-python:3.11"


def base_image(client: docker.DockerClient, folder: Path) -> str:
    """A stand-in for python:3.11-slim, from this machine's Debian mirror. Kept by the engine for the next run."""
    if any(BASE in image.tags for image in client.images.list()):
        return BASE
    (debootstrap,) = find("docker", "debootstrap")
    release = dict(line.split("=", 1) for line in Path("/etc/os-release").read_text().splitlines() if "=" in line)
    codename = release["VERSION_CODENAME"]
    source = ["apt-get", "indextargets", "--format", "$(REPO_URI)", f"Codename: {codename}", "Identifier: Packages"]
    mirror = subprocess.run(source, capture_output=True, text=True, check=True).stdout.split()[0]
    root = folder / "root"
    include = "--include=python3,python3-venv,ca-certificates"
    _logged([debootstrap, "--variant=minbase", include, codename, str(root), mirror])
    _logged(["chroot", str(root), "python3", "-m", "venv", "/opt/pip"])
    (root / "usr/local/bin/pip").symlink_to("/opt/pip/bin/pip")
    (root / "usr/local/bin/python").symlink_to("/usr/bin/python3")
    shutil.rmtree(root / "var/cache/apt", ignore_errors=True)
    packed = folder / "base.tar"
    _logged(["tar", "-C", str(root), "--one-file-system", "-cf", str(packed), "."])
    repository, tag = BASE.split(":")
    client.api.import_image_from_file(str(packed), repository=repository, tag=tag)
    shutil.rmtree(root)
    packed.unlink()
    return BASE


def service_images(client: docker.DockerClient, services: Iterable[str], folder: Path) -> dict[str, str]:
    """deploy/Dockerfile built for each of ``services``, from a folder of wheels in place of an index."""
    base = base_image(client, folder)
    context = folder / "context"
    for name in ("schemas", "accelerators", "runtime", "services"):
        shutil.copytree(ROOT / name, context / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "deploy" / "Dockerfile", context / "Dockerfile")
    ours = [str(ROOT / name) for name in ("schemas", "accelerators", "runtime")]
    ours += [str(ROOT / "services" / service) for service in services]
    wheels = context / "wheels"
    _logged([sys.executable, "-m", "pip", "wheel", "--quiet", "-w", str(wheels), *ours, "hatchling>=1.25"])
    for wheel in wheels.glob("oarlock*.whl"):
        # What is ours is to come from its folder, as in a build with an index.
        wheel.unlink()
    arguments = {"PYTHON_IMAGE": base, "PIP_FIND_LINKS": "/source/wheels", "PIP_NO_INDEX": "1"}
    tags = {}
    for service in services:
        tags[service] = f"oarlock-{service}:test"
        client.images.build(
            path=str(context),
            tag=tags[service],
            target="service",
            buildargs={**arguments, "SERVICE": service},
            rm=True,
        )
    shutil.rmtree(context)
    return tags


def _logged(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command[0]}: {(done.stdout + done.stderr)[-3000:]}"
