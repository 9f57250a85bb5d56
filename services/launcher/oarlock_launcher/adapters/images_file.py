"""Reads a site's own image entries."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import yaml
from pydantic import BaseModel, ConfigDict, StringConstraints, TypeAdapter, ValidationError

from oarlock_launcher.core.images import Image
from oarlock_runtime import OarlockError

_Text = Annotated[str, StringConstraints(min_length=1, max_length=512)]


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid")

    image: _Text
    framework: _Text | None = None
    vendor: _Text | None = None
    kind: _Text | None = None
    driver: _Text | None = None


def read_images(path: Path | None) -> tuple[Image, ...]:
    """The entries of a YAML list.

    Raises:
        OarlockError: the file cannot be read or is no such list.
    """
    if path is None:
        return ()
    try:
        entries = TypeAdapter(list[_Entry]).validate_python(yaml.safe_load(path.read_text()))
    except (OSError, yaml.YAMLError, ValidationError) as error:
        raise OarlockError(
            f"the image file {path} cannot be used: {error}", fix="write a YAML list of {image, framework, vendor}"
        ) from error
    return tuple(Image(e.image, e.framework, e.vendor, e.kind, e.driver) for e in entries)
