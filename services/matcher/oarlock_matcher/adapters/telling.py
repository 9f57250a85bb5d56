"""From the core's effects to what is published: reasons in both languages, candidates, rejections."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from oarlock_matcher.adapters.kernel_support import remark
from oarlock_matcher.core import effects as fx
from oarlock_matcher.core.events import StandingSeen, UsageSeen
from oarlock_matcher.core.fair_share import OwnerShare
from oarlock_matcher.core.policies.learned_weights import SHIPPED
from oarlock_schemas import (
    Candidate,
    DeviceReason,
    DeviceState,
    PlacedDevice,
    Portrait,
    TaskPlaced,
    TaskProfiled,
    TaskQueued,
    TaskRejected,
)

MAX_CANDIDATES = 16
MAX_REASONS = 32

_CHINESE = {
    "memory_too_small": "设备显存不足",
    "memory_in_use": "显存已被占用",
    "busy": "设备正被占用",
    "kind_forbidden": "任务不允许使用该设备",
    "kind_not_required": "任务指定了其他设备",
    "precision_unsupported": "设备不支持该精度",
    "kernel_unsupported": "设备不支持所需算子",
    "unavailable": "设备不可用",
    "draining": "节点正在下线",
    "gang_size": "空闲设备数量不够",
    "no_devices": "集群中没有设备",
    "quota": "超出用户配额",
    "array_limit": "任务组同时运行数已达上限",
    "after": "等待前置任务",
    "turn": "排队中",
    "timeout": "等待超时",
    "dependency_failed": "前置任务失败",
    "reserved": "设备已被预留",
    "maintenance": "设备计划维护",
    "held": "设备为队首任务保留",
    "lease_conflict": "设备刚被其他任务占用",
    "deadline": "任务有截止时间",
}


def gigabytes(count: int) -> str:
    """Bytes in GB as memory is sold and shown: 2^30, two figures."""
    return f"{count / 2**30:.1f} GB"


def reasons(items: Iterable[fx.Reason]) -> list[DeviceReason]:
    """Reasons as they travel."""
    return [
        DeviceReason(
            device_uid=item.devices[0] if item.count == 1 and len(item.devices) == 1 and _token(item) else None,
            reason=item.code,
            message=item.sentence,
            message_zh=_CHINESE.get(item.code),
            devices=max(1, item.count),
        )
        for item in list(items)[:MAX_REASONS]
    ]


def _token(item: fx.Reason) -> bool:
    return item.devices[0].replace("-", "").replace("_", "").isalnum() and item.devices[0].isascii()


def queued(effect: fx.Queued, at: str) -> TaskQueued:
    """Why a task waits."""
    return TaskQueued(
        task_id=effect.task_id,
        reasons=reasons(effect.reasons),
        would_free=list(effect.would_free_it)[:MAX_REASONS],
        position=effect.position,
        at=at,
    )


def rejected(
    effect: fx.Rejected, profiled: TaskProfiled | None, at: str, died_of_memory_on: str | None = None
) -> TaskRejected:
    """Why a task will not run, and the profiler's advice on what would make it fit.

    ``died_of_memory_on``: the kind of the device that a run of it showed to be too small.
    """
    message = {
        "no_device_fits": "no device of this fleet can take the task",
        "timeout": "the task waited longer than its timeout",
        "quota": "the task asks for more than its owner may hold",
        "dependency_failed": "a task that it comes after did not succeed",
        "invalid": "the task makes no sense",
    }.get(effect.code, effect.code)
    chinese = {
        "no_device_fits": "集群中没有能容纳该任务的设备",
        "timeout": "任务等待超时",
        "quota": "超出用户配额",
        "dependency_failed": "前置任务未成功",
        "invalid": "任务参数无效",
    }.get(effect.code, effect.code)
    largest = effect.largest_bytes_seen
    if effect.code == "no_device_fits" and died_of_memory_on is not None:
        message += f": it ran out of memory on {died_of_memory_on}, and there is no larger device it may use"
        chinese += f": 在 {died_of_memory_on} 上内存不足, 且没有更大的可用设备"
    elif (
        effect.code == "no_device_fits" and effect.smallest_bytes is not None and effect.smallest_bytes > (largest or 0)
    ):
        has = f"; the largest here has {gigabytes(largest)}" if largest else ""
        has_zh = f", 现有最大为 {gigabytes(largest)}" if largest else ""
        message += f": it needs a device of at least {gigabytes(effect.smallest_bytes)}{has}"
        chinese += f": 需要至少 {gigabytes(effect.smallest_bytes)} 的设备{has_zh}"
    elif effect.code in {"no_device_fits", "invalid"} and effect.reasons:
        # Memory is not what stands in the way; the first reason says what does.
        message += f": {effect.reasons[0].sentence}"
    return TaskRejected(
        task_id=effect.task_id,
        by="matcher",
        code=effect.code,
        message=message,
        message_zh=chinese,
        reasons=reasons(effect.reasons),
        advice=profiled.portrait.advice if profiled is not None and effect.code == "no_device_fits" else [],
        at=at,
    )


STANDING_KEY = "standing"
"""Key of the bucket `policy` where the leader writes how the learned policy stands; operators only read it."""


def standing(effect: fx.PolicyStanding, at: str) -> dict[str, Any]:
    """How the learned policy stands, as operators read it."""
    return {
        "policy": effect.policy,
        "weights": effect.version or SHIPPED.version,
        "trusted": effect.trusted,
        "answers": effect.policy if effect.trusted else effect.rules,
        "regret_percent": {
            effect.policy: round(effect.regret_percent, 3),
            effect.rules: round(effect.rules_regret_percent, 3),
        },
        "rehearsals": effect.rehearsals,
        "recent": [list(regrets) for regrets in effect.recent],
        "experience": {kind: list(numbers) for kind, numbers in effect.experience.items()},
        "at": at,
    }


def standing_seen(document: Mapping[str, Any], learned_version: str | None) -> StandingSeen | None:
    """How the learned policy stood under the leader before; None where it was told of other weights, or cannot be
    read: then the policy begins anew."""
    if document.get("weights") != (learned_version or SHIPPED.version):
        return None
    try:
        recent = tuple((float(learned), float(rules)) for learned, rules in document["recent"])
        experience = {
            str(kind): tuple(float(number) for number in numbers) for kind, numbers in document["experience"].items()
        }
        trusted, rehearsals = bool(document["trusted"]), int(document["rehearsals"])
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    every = [number for pair in (*recent, *experience.values()) for number in pair]
    if not all(math.isfinite(number) for number in every) or any(len(four) != 4 for four in experience.values()):
        return None
    return StandingSeen(trusted, max(0, rehearsals), recent, experience)


SHARES_KEY = "shares"
"""Key of the bucket `policy` where the leader writes how owners stand in the fair share."""


def shares(owners: Iterable[OwnerShare]) -> dict[str, dict[str, float]]:
    """How owners stand in the fair share, as operators and the next leader read it."""
    return {
        share.owner: {
            "devices": share.devices,
            "waiting_devices": share.waiting_devices,
            "recent_devices": round(share.recent_devices, 4),
            "behind_seconds": round(share.behind_seconds, 1),
        }
        for share in owners
    }


def usage_seen(document: Mapping[str, Any]) -> UsageSeen | None:
    """What owners had used of late under the leader before; None where it cannot be read: then all begin anew."""
    try:
        at = datetime.fromisoformat(document["at"]).timestamp()
        held = {str(owner): float(share["recent_devices"]) for owner, share in document["owners"].items()}
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    if not all(math.isfinite(devices) and devices >= 0.0 for devices in held.values()):
        return None
    return UsageSeen({owner: devices for owner, devices in held.items() if devices}, at)


def _algorithm_reason(effect: fx.Placed, portrait: Portrait, devices: Iterable[DeviceState]) -> str | None:
    """Why another policy answered than was asked, what the one in the shadow would have done, and which operators will
    not run on the devices themselves."""
    told = [] if effect.policy_note is None else [effect.policy_note]
    shadow = effect.shadow
    if shadow is not None:
        other = "agrees" if shadow.agrees else f"would have taken {shadow.node} ({shadow.kind})"
        told.append(f"{shadow.policy} in the shadow {other}")
    operators = [kernel.name for kernel in portrait.kernels]
    for kind, vendor in sorted({(device.kind, device.vendor) for device in devices}):
        about = remark(kind, vendor, portrait.framework, operators)
        if about is not None:
            told.append(about)
    return "; ".join(told) or None


def placed(
    effect: fx.Placed,
    profiled: TaskProfiled,
    fences: Mapping[str, int],
    devices: Mapping[str, DeviceState],
    at: str,
) -> TaskPlaced:
    """A placement, with everything its launcher needs."""
    peak = profiled.portrait.memory.peak
    return TaskPlaced(
        task_id=effect.task_id,
        task=profiled.task,
        portrait=profiled.portrait,
        attempt=effect.attempt,
        site=effect.site,
        devices=[
            PlacedDevice(
                uid=share.device_uid,
                kind=devices[share.device_uid].kind,
                vendor=devices[share.device_uid].vendor,
                node=share.node,
                index=devices[share.device_uid].index,
                reserved_bytes=share.bytes,
                fence=fences[share.device_uid],
                simulated=devices[share.device_uid].simulated,
            )
            for share in effect.shares
        ],
        exclusive=any(share.exclusive for share in effect.shares),
        predicted_bytes=peak.device_bytes,
        predicted_step_seconds=effect.step_seconds,
        algorithm=effect.policy,
        algorithm_reason=_algorithm_reason(
            effect, profiled.portrait, [devices[share.device_uid] for share in effect.shares]
        ),
        score=effect.score,
        candidates=[
            Candidate(device_uids=[], kind=c.kind, node=c.node, score=c.score, parts=dict(c.parts))
            for c in effect.candidates[:MAX_CANDIDATES]
        ],
        rejected=reasons(effect.rejections),
        at=at,
    )
