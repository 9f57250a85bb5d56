"""The learned policy on a real bus: who asks for it gets it, the shadow is recorded, operators read its standing."""

from __future__ import annotations

import asyncio
from pathlib import Path

from oarlock.sdk import AsyncClient
from oarlock_matcher.adapters.decision_log import DecisionLog, replay_file
from oarlock_matcher.core.policies.learned_weights import SHIPPED
from oarlock_matcher.core.rehearsal import FEWEST_DEMANDS
from oarlock_runtime import Bus, EmbeddedServer, Service

from .conftest import Fleet, device, leading, profiled


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
    assert all(mismatches == [] for _, _, mismatches in replay_file(path))
