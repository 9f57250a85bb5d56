"""The learned policy on a real bus: who asks for it gets it, the shadow is recorded, operators read its standing."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

from oarlock.sdk import AsyncClient
from oarlock_matcher.adapters.decision_log import DecisionLog, replay_file
from oarlock_matcher.adapters.telling import standing, standing_seen
from oarlock_matcher.core.effects import PolicyStanding
from oarlock_matcher.core.events import StandingSeen
from oarlock_matcher.core.machine import decide
from oarlock_matcher.core.policies.base import EndedRun
from oarlock_matcher.core.policies.learned import LearnedPolicy
from oarlock_matcher.core.policies.learned_weights import SHIPPED
from oarlock_matcher.core.policy_settings import Weights
from oarlock_matcher.core.rehearsal import FEWEST_DEMANDS
from oarlock_matcher.core.state import MatcherState
from oarlock_runtime import Bus, EmbeddedServer, Service

from .conftest import Fleet, device, leading, profiled


async def oarlock(nats: EmbeddedServer, *arguments: str) -> str:
    """What the command prints."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OARLOCK_")}
    environment |= {"OARLOCK_NATS_URL": nats.url, "OARLOCK_NATS_TOKEN": nats.token or ""}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "oarlock", *arguments), env=environment, stdout=asyncio.subprocess.PIPE
    )
    printed, _ = await process.communicate()
    assert process.returncode == 0
    return printed.decode()


async def test_a_task_may_name_its_policy_and_else_the_operators_do(bus: Bus, fleet: Fleet, matcher: Service) -> None:
    await fleet.add(device("GPU-a"), device("GPU-b"), device("GPU-c"))
    await fleet.submit(profiled("named", 30, scheduler={"algorithm": "rl_based"}))
    assert (await fleet.placement("named")).algorithm == "rl_based"
    await fleet.submit(profiled("plain", 30))
    assert (await fleet.placement("plain")).algorithm == "rule_based"
    client = AsyncClient(bus)
    await client.policy({"policy": "rl_based"})
    async with asyncio.timeout(60):
        async for _ in bus.watch(bus.subjects.policy_updated(), start="all"):
            break
    await fleet.submit(profiled("theirs", 30))
    placed = await fleet.placement("theirs")
    assert placed.algorithm == "rl_based"
    assert any(name.startswith("packing.") for name in placed.candidates[0].parts)


async def test_from_the_shadow_it_is_recorded_and_its_standing_told(
    tmp_path: Path, bus: Bus, nats: EmbeddedServer, fleet: Fleet
) -> None:
    path = tmp_path / "decisions.jsonl"
    await bus.bucket("policy").put("matcher", {"shadow_policy": "rl_based"})
    await fleet.add(device("GPU-a"), device("GPU-b", "RTX 3090", "n2", 24))
    client = AsyncClient(bus)
    assert await client.policy_standing() is None
    assert json.loads(await oarlock(nats, "policy", "standing")) is None
    async with (
        await Bus.connect(nats.url, token=nats.token, name="m") as own,
        leading(own, "m", DecisionLog(path)) as service,
    ):
        await fleet.submit(profiled("first", 30))
        placed = await fleet.placement("first")
        assert placed.algorithm == "rule_based"
        assert "rl_based in the shadow agrees" in (placed.algorithm_reason or ""), "there is only one device for it"
        for number in range(FEWEST_DEMANDS):
            await fleet.publish(profiled(f"t{number}", 10))
        async with asyncio.timeout(120):
            async for change in bus.bucket("policy").watch("standing"):
                if change.value is not None:
                    break
        told = await client.policy_standing()
        assert told is not None
        assert (told["policy"], told["trusted"], told["weights"]) == ("rl_based", True, SHIPPED.version)
        assert set(told["regret_percent"]) == {"rl_based", "rule_based"}
        count = service.registry.get_sample_value
        assert count("oarlock_shadow_decisions_total", {"policy": "rl_based", "agrees": "yes"}) >= 1
        assert count("oarlock_learned_policy_trusted", {"policy": "rl_based"}) == 1
        assert count("oarlock_policy_regret_percent", {"policy": "rule_based"}) is not None
        assert json.loads(await oarlock(nats, "policy", "standing")) == told
        assert told["recent"] and len(told["recent"]) == told["rehearsals"]
    assert all(mismatches == [] for _, _, mismatches in replay_file(path))
    # The next leader goes on from there.
    await bus.bucket("policy").put("standing", {**told, "trusted": False, "rehearsals": 7})
    again = tmp_path / "again.jsonl"
    async with (
        await Bus.connect(nats.url, token=nats.token, name="n") as own,
        leading(own, "n", DecisionLog(again)) as service,
    ):
        await fleet.submit(profiled("asks", 1, scheduler={"algorithm": "rl_based"}))
        placed = await fleet.placement("asks")
        assert placed.algorithm == "rule_based", "the learned policy is still set aside"
    assert '"StandingSeen"' in again.read_text(encoding="utf-8")
    assert all(mismatches == [] for _, _, mismatches in replay_file(again))


@pytest.mark.parametrize(
    "changed",
    [{"weights": "other"}, {"recent": 3}, {"recent": [[1]]}, {"experience": {"A": [1]}}, {"recent": [["inf", 0]]}],
)
def test_a_standing_of_other_weights_or_one_that_is_damaged_begins_anew(changed: dict[str, object]) -> None:
    effect = PolicyStanding(
        "rl_based", "rule_based", None, False, 1.0, 0.5, 9, ((1.0, 0.5),), {"V100": (9.0, 0.5, 8.0, 1.0)}
    )
    document = json.loads(json.dumps(standing(effect, "2026-01-01T00:00:00Z")))
    seen = standing_seen(document, None)
    assert seen is not None
    assert (seen.trusted, seen.rehearsals, seen.recent, seen.experience) == (False, 9, effect.recent, effect.experience)
    assert standing_seen({**document, **changed}, None) is None


def test_experience_outlives_its_leader() -> None:
    first = LearnedPolicy(Weights(), None)
    for _ in range(40):
        first.ended(EndedRun("V100", "succeeded", 200.0, 100.0))
        first.ended(EndedRun("A100", "succeeded", 100.0, 100.0))
    state = MatcherState()
    state, _ = decide(state, StandingSeen(True, 3, (), first.remembers()), 0.0)
    heir = state.policy("rl_based")
    assert isinstance(heir, LearnedPolicy) and heir.remembers() == first.remembers() != {}
    assert state.trial.standing(state).experience == first.remembers()
