"""``python -m benchmarks.prediction_error --truth FOLDER``: predicts every row and prints the table."""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from benchmarks.prediction_error import gpumemnet, language_tables, model_zoos
from benchmarks.prediction_error.cases import Case
from benchmarks.prediction_error.predict import Prediction, predict
from benchmarks.prediction_error.scoring import markdown, mib, table, with_campaign_context

SOURCES = {
    "mlp": gpumemnet.mlps,
    "cnn": gpumemnet.cnns,
    "transformer": gpumemnet.transformers,
    "horus": gpumemnet.horus,
    "realworld": model_zoos.realworld,
    "schedtune": model_zoos.schedtune,
    "xmem": model_zoos.xmem,
    "timm": model_zoos.timm,
    "trainer": language_tables.hugging_face,
    "peft": language_tables.peft,
    "litgpt": language_tables.litgpt,
    "litgpt_hub": language_tables.litgpt_hub,
    "paddlenlp": language_tables.paddlenlp,
}


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="benchmarks.prediction_error", description=__doc__)
    parser.add_argument("--truth", type=Path, default=_folder("OARLOCK_TRUTH"), help="folder of the measured tables")
    parser.add_argument("--source", action="append", choices=sorted(SOURCES), help="only these (default: all)")
    parser.add_argument("--limit", type=int, help="at most this many rows of a source, drawn with a fixed seed")
    parser.add_argument("--worst", type=int, default=0, help="also list this many of the worst rows")
    parser.add_argument("--library-path", type=Path, action="append", default=[], help="where timm, transformers … lie")
    parser.add_argument("--json", type=Path, help="write every prediction here")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="scripts read at a time (default: cores)")
    options = parser.parse_args()
    if options.truth is None or not options.truth.is_dir():
        parser.error("no measured tables: name their folder with --truth or OARLOCK_TRUTH")
    options.library_path += [Path(part) for part in os.environ.get("OARLOCK_LIBRARIES", "").split(os.pathsep) if part]
    predictions: list[Prediction] = []
    for name in options.source or sorted(SOURCES):
        cases = list(SOURCES[name](options.truth))
        if options.limit and len(cases) > options.limit:
            cases = random.Random(7).sample(cases, options.limit)
        begun = time.monotonic()
        predictions += _predicted(cases, options.library_path, options.jobs)
        print(f"{name}: {len(cases)} scripts read in {time.monotonic() - begun:.0f} s", file=sys.stderr)
    scored = with_campaign_context(predictions)
    print(markdown(table(predictions, scored)))
    counted = [item for item in scored if item.prediction.case.scored and not item.prediction.case.out_of_memory]
    for item in sorted(counted, key=lambda item: -abs(item.error))[: options.worst]:
        case = item.prediction.case
        print(f"{item.error:+.1%} {mib(item.predicted_bytes)} against {mib(case.measured_bytes)} MiB: {case.name}")
    for prediction in [p for p in predictions if p.abstained][: options.worst]:
        print(f"abstained: {prediction.case.name}: {prediction.abstained}")
    if options.json:
        options.json.write_text(json.dumps([_record(item.prediction.case, item.predicted_bytes) for item in scored]))
    return 0


def _predicted(cases: Sequence[Case], library_paths: Sequence[Path], jobs: int) -> list[Prediction]:
    if jobs <= 1:
        return [predict(case, library_paths) for case in cases]
    with ProcessPoolExecutor(jobs) as pool:
        return list(pool.map(partial(predict, library_paths=library_paths), cases, chunksize=4))


def _folder(variable: str) -> Path | None:
    given = os.environ.get(variable)
    return Path(given) if given else None


def _record(case: Case, predicted: int) -> dict[str, object]:
    return {
        "source": case.source,
        "name": case.name,
        "family": case.family,
        "kind": case.kind,
        "measured_bytes": case.measured_bytes,
        "predicted_bytes": predicted,
        "scored": case.scored,
        "out_of_memory": case.out_of_memory,
    }


if __name__ == "__main__":
    sys.exit(main())
