"""The committed JSON Schema and AsyncAPI documents are those of the models."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema

from oarlock_schemas.catalogue import CHANNELS
from oarlock_schemas.export import asyncapi, documents, main, stale

FOLDER = Path(__file__).parents[2] / "schemas" / "json"


def test_the_committed_documents_are_fresh() -> None:
    assert stale(FOLDER) == [], "run: python -m oarlock_schemas.export schemas/json"


def test_a_changed_a_missing_and_a_left_over_file_are_stale(tmp_path: Path) -> None:
    assert main([str(tmp_path)]) == 0
    assert main([str(tmp_path), "--check"]) == 0
    (tmp_path / "Portrait.json").write_text("{}")
    (tmp_path / "TaskPlaced.json").unlink()
    (tmp_path / "Left.json").write_text("{}")
    assert stale(tmp_path) == ["Left.json", "Portrait.json", "TaskPlaced.json"]
    assert main([str(tmp_path), "--check"]) == 1


def test_each_schema_is_a_valid_schema() -> None:
    for name, text in documents().items():
        if name != "asyncapi.json":
            jsonschema.Draft202012Validator.check_schema(json.loads(text))


def test_the_asyncapi_document_resolves_and_names_every_channel() -> None:
    document = asyncapi()
    assert {c.name for c in CHANNELS} == set(document["channels"])

    def references(node: object) -> list[str]:
        if isinstance(node, dict):
            return [v for k, v in node.items() if k == "$ref"] + [r for v in node.values() for r in references(v)]
        return [r for v in node for r in references(v)] if isinstance(node, list) else []

    for reference in references(document):
        target: object = document
        for part in reference.removeprefix("#/").split("/"):
            assert isinstance(target, dict) and part in target, reference
            target = target[part]
