"""How much of a node's free devices the expected demand could not use: F = Σ_m p_m · frag_m.

Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent", USENIX
ATC'23. frag_m of a spec m: all idle milli of the node if m needs no device, cannot use this model or does not fit the
node; else the sum of the leftovers too small for m's share.

Specs that ask for the same devices differ only in the processors they need, so their weights are summed up by
processors beforehand: for a node, one look-up gives the weight of all specs of a group that its free processors admit.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oarlock_matcher.core.policies.demand_mix import MixTable


class FragmentationMeasure:
    """F for any number of node states at once, for one demand mix."""

    def __init__(self, mix: MixTable, models: int) -> None:
        groups = sorted({(int(n), int(m)) for n, m in zip(mix.count, mix.milli, strict=True) if n > 0})
        self._count = np.array([n for n, _ in groups], dtype=np.int64)
        self._milli = np.array([m for _, m in groups], dtype=np.int64)
        self._cpu_steps = np.unique(mix.cpu_milli) if len(mix.cpu_milli) else np.zeros(0, dtype=np.int64)
        self._weight = np.zeros((models, len(self._cpu_steps) + 1, len(groups)))
        number = {group: i for i, group in enumerate(groups)}
        for cpu, n, milli, able, share in zip(mix.cpu_milli, mix.count, mix.milli, mix.models, mix.share, strict=True):
            if n == 0:
                continue
            # Free processors at or above the i-th step have rank i + 1 (see `_rank`).
            first = int(np.searchsorted(self._cpu_steps, cpu)) + 1
            for model in range(models) if able is None else able:
                if model < models:
                    self._weight[model, first:, number[(int(n), int(milli))]] += share

    def of(self, free: NDArray[np.int64], cpu: NDArray[np.int64], model: NDArray[np.intp]) -> NDArray[np.float64]:
        """F of each state. `free` [states, slots]: idle milli of each device; `cpu` [states]; `model` [states]."""
        total: NDArray[np.float64] = free.sum(axis=1).astype(np.float64)
        if not len(self._count):
            return total
        rank = np.searchsorted(self._cpu_steps, cpu, side="right")
        weight = self._weight[model, rank]
        usable = free[:, :, np.newaxis] >= self._milli
        enough = usable.sum(axis=1) >= self._count
        serves = np.einsum("sg,sgt->st", free.astype(np.float64), usable)
        saved: NDArray[np.float64] = (weight * enough * serves).sum(axis=1)
        left: NDArray[np.float64] = total - saved
        return left
