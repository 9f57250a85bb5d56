"""Fair share: what owners used of late is told to operators and outlives its leader."""

from __future__ import annotations

import asyncio
import json

import pytest

from oarlock.sdk import AsyncClient
from oarlock_matcher.adapters.telling import shares, usage_seen
from oarlock_matcher.core.events import TaskAdopted, UsageSeen
from oarlock_matcher.core.fair_share import owner_shares
from oarlock_matcher.core.machine import decide
from oarlock_matcher.core.policy_settings import PolicySettings
from oarlock_matcher.core.state import MatcherState
from oarlock_runtime import Bus, EmbeddedServer

from .conftest import Fleet, device, leading, profiled
from .fleets import V100, Driver, need, node
from .test_learned_service import oarlock

RULES = PolicySettings(fair_share_seconds=100.0, fair_share_half_life_seconds=1000.0)


def used_by_ann() -> Driver:
    """Ann has held two devices for three half-lives."""
    driver = Driver(RULES).fleet(node("v", V100, 2))
    driver.place(need("used", owner="ann", device_count=2))
    driver.finish("used", after=3000.0)
    return driver


def test_who_used_most_stands_last() -> None:
    driver = used_by_ann()
    driver.place(need("runs", owner="bob"))
    first, second = owner_shares(driver.state, driver.now)
    assert (first.owner, first.devices) == ("ann", 0)
    assert first.recent_devices == pytest.approx(2 * 7 / 8)
    assert (second.owner, second.devices, second.behind_seconds) == ("bob", 1, 100.0)
    assert first.behind_seconds == pytest.approx(175.0)
    later = {share.owner: share.behind_seconds for share in owner_shares(driver.state, driver.now + 1000.0)}
    assert later == {"ann": pytest.approx(87.5), "bob": 100.0}, "half is forgotten; what is held now is not"
    assert owner_shares(MatcherState(), 0.0) == ()


def test_the_next_leader_does_not_forget_it() -> None:
    former = used_by_ann()
    at = "1970-01-01T01:06:40+00:00"
    assert former.now == 4000.0
    document = json.loads(json.dumps({"owners": shares(owner_shares(former.state, former.now)), "at": at}))
    seen = usage_seen(document)
    assert seen == UsageSeen({"ann": 1.75}, 4000.0)
    for event, first in ((seen, "b"), (UsageSeen({}, 4000.0), "a")):
        heir = Driver(RULES, now=4010.0)
        heir.tell(event)
        heir.tell(event)
        heir.fleet(node("v", V100, 2)).place(need("runs", owner="cid", device_count=2))
        heir.queue(need("a", owner="ann", device_count=2))
        heir.queue(need("b", owner="bob", device_count=2), after=5.0)
        assert heir.finish("runs") == [first]


def test_what_an_adopted_run_held_before_counts() -> None:
    heir = Driver(RULES, now=4000.0).fleet(node("v", V100, 2))
    placed = used_by_ann().place(need("long", owner="ann", device_count=2))
    heir.tell(TaskAdopted(need("long", owner="ann", device_count=2), placed.shares, placed_at=1000.0))
    heir.finish("long")
    (ann,) = owner_shares(heir.state, heir.now)
    assert ann.recent_devices == pytest.approx(1.75)


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"owners": {}, "at": "yesterday"},
        {"owners": {"ann": {"recent_devices": "nan"}}, "at": "2026-01-01T00:00:00Z"},
        {"owners": {"ann": 3}, "at": "2026-01-01T00:00:00Z"},
        {"owners": {"ann": {"recent_devices": -1.0}}, "at": "2026-01-01T00:00:00Z"},
    ],
)
def test_a_damaged_list_begins_anew(document: dict[str, object]) -> None:
    assert usage_seen(document) is None


def test_a_repetition_changes_nothing() -> None:
    driver = used_by_ann()
    before = owner_shares(driver.state, driver.now)
    state, effects = decide(driver.state, UsageSeen({"ann": 9.0}, driver.now), driver.now)
    assert (owner_shares(state, driver.now), effects) == (before, ())


async def test_operators_see_it_and_the_next_leader_goes_on_from_it(
    bus: Bus, nats: EmbeddedServer, fleet: Fleet
) -> None:
    await bus.bucket("policy").put("matcher", {"fair_share_seconds": 100, "fair_share_half_life_seconds": 1e9})
    await fleet.add(device("GPU-a"))
    client = AsyncClient(bus)

    async def told(owner: str, devices: int) -> dict[str, float]:
        """The owner's entry once it speaks of so many devices."""
        async with asyncio.timeout(60):
            async for change in bus.bucket("policy").watch("shares"):
                found = (change.value or {}).get("owners", {}).get(owner)
                if found is not None and found["devices"] == devices:
                    return dict(found)
        raise AssertionError("the watch ended")

    async with await Bus.connect(nats.url, token=nats.token, name="m") as own, leading(own, "m"):
        await fleet.submit(profiled("first", 30, owner="ann"))
        await fleet.placement("first")
        assert (await told("ann", 1))["behind_seconds"] == pytest.approx(100.0)
    # Ann's use of long ago, as a leader before would have left it.
    left = {"devices": 0, "waiting_devices": 0, "recent_devices": 3.0, "behind_seconds": 300.0}
    await bus.bucket("policy").put("shares", {"owners": {"eve": left}, "at": fleet.devices["s1.n1.GPU-a"].seen_at})
    async with await Bus.connect(nats.url, token=nats.token, name="n") as own, leading(own, "n"):
        assert (await told("ann", 1))["devices"] == 1, "the run was adopted"
        standing = await client.policy_standing()
        assert standing is not None
        assert standing["owners"]["eve"] == pytest.approx(left, rel=1e-3)
        assert json.loads(await oarlock(nats, "policy", "standing")) == standing
