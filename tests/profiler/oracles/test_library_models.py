"""Library models, read as text: parameters, shapes, bytes kept and FLOPs are what the frameworks themselves say."""

import pytest
from benchmarks.reader import models, packages
from benchmarks.reader.cases import Case
from benchmarks.reader.cases import cases as all_cases

SAMPLE = {
    "paddle.vision": 3,
    "torchvision": 4,
    "timm": 8,
    "transformers": 4,
    "paddleclas": 12,
    "paddleseg": 8,
    "paddledet": 6,
    "segmentation-models-pytorch": 8,
}
"""One case in so many of each suite is read here; the whole is ``make bench-reader``."""
LIVE = ("paddle.vision:resnet18", "torchvision:resnet18", "torchvision:swin_t", "transformers:GPT2LMHeadModel")


def chosen(suite: str) -> list[Case]:
    return models.suite_cases(suite)[:: SAMPLE[suite]]


@pytest.fixture(scope="module")
def truth() -> dict[str, object]:
    cases: dict[str, object] = models.measured()["cases"]
    return cases


@pytest.mark.parametrize("suite", models.SUITES)
def test_parameters(suite: str, oracles: list[str], truth: dict[str, object]) -> None:
    result = models.score(suite, chosen(suite), truth, step=False)
    # of the packages' classes, many ask for arguments, or are losses and the like: the framework builds fewer
    assert result.tried >= len(chosen(suite)) * (0.2 if suite in packages.SUITES else 0.9)
    assert result.equal / result.tried >= models.TARGETS[suite], result.failed


@pytest.mark.parametrize("suite", ["paddle.vision", "torchvision", "transformers"])
def test_steps(suite: str, oracles: list[str], truth: dict[str, object]) -> None:
    stepped = [case for case in models.suite_cases(suite) if case.batches][::4]
    result = models.score(suite, stepped, truth)
    assert result.leaves > 100
    assert result.leaves_equal / result.leaves >= 0.99, result.wrong_leaves
    assert models.spread(result.saved)[0] <= 0.01, result.saved
    assert models.spread(result.flops)[0] <= 0.01, result.flops


def test_the_frameworks_still_say_so(oracles: list[str], truth: dict[str, object]) -> None:
    wanted = [case for case in all_cases() if case.key in LIVE]
    assert len(wanted) == len(LIVE)
    said = models.ask(wanted)["cases"]
    for key in LIVE:
        assert said[key] == truth[key], key
