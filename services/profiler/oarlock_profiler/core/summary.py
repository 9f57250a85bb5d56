"""From the machine's final state to a :class:`Reading`."""

from __future__ import annotations

from typing import Any

from oarlock_profiler.core.engine.modules import LayerInstance, module_tree, parameter_count
from oarlock_profiler.core.engine.trace import Trace
from oarlock_profiler.core.interpreter.machine import Machine
from oarlock_profiler.core.interpreter.values import Module
from oarlock_profiler.core.overlays.training_notes import fill
from oarlock_profiler.core.reading import Reading


def summarise(machine: Machine, framework: str | None, stopped: str | None) -> Reading:
    """Gather what the interpreter, the engine and the overlays saw."""
    if framework is None and "numpy" in machine.importer.modules:
        framework = "numpy"
    reading = Reading(
        framework=framework,
        kind="training" if machine.trace.steps else "other",
        trace=_sealed(machine.trace),
        findings=machine.findings,
        stopped=stopped,
        path=machine.path,
        backward_where=machine.engine.backward_where,
    )
    _models(reading, machine)
    fill(reading, machine.state, machine.engine, machine.training_loops)
    _inputs(reading, machine.engine)
    return reading


def _without_copies(models: list[LayerInstance], learning: set[int]) -> list[LayerInstance]:
    """The models less the copies of a trained one that are only kept or validated (moving averages, ``deepcopy``)."""

    def trained(root: LayerInstance) -> bool:
        return any(id(parameter) in learning for _, parameter in root.named_parameters())

    def make(root: LayerInstance) -> tuple[tuple[int, ...] | None, ...]:
        # not by its class: what validates or exports may wrap the copy
        return tuple(parameter.shape for _, parameter in root.named_parameters())

    made = {make(root) for root in models if trained(root)}
    return [root for root in models if trained(root) or make(root) not in made]


def _inputs(reading: Reading, engine: Any) -> None:
    """Where no loader gave the batch: what the model was first called with, and the dimension its inputs share."""
    if reading.inputs:
        return
    for root in engine.roots:
        given = engine.root_inputs.get(id(root), [])
        if given and next(root.named_parameters(), None) is not None:
            reading.inputs = given
            leading = {spec.shape[0] for spec in given if spec.shape}
            if reading.batch_size is None and len(leading) == 1:
                reading.batch_size = leading.pop()
            return


def _models(reading: Reading, machine: Machine) -> None:
    """The models: every layer that was called by itself and has parameters; a shared parameter counts once. Where
    nothing was called, those that stand in the entry script's names."""
    engine: Any = machine.engine
    called: list[LayerInstance] = _with_owners(engine) or _standing(machine)
    inner = {id(layer) for root in called for path, layer in root.named_modules() if path}
    models = [root for root in called if id(root) not in inner and next(root.named_parameters(), None) is not None]
    models = _without_copies(models, engine.learning)
    if not models:
        return
    reading.roots = [module_tree(root) for root in models]
    parameters = {id(parameter): parameter for root in models for _, parameter in root.named_parameters()}
    reading.parameters_total = sum(parameter_count(p) for p in parameters.values())
    reading.parameters_trainable = sum(parameter_count(p) for p in parameters.values() if p.requires_grad)


def _with_owners(engine: Any) -> list[LayerInstance]:
    """The layers that were called by themselves, each part of a model through the model that an optimiser was given.

    A script may call only ``agent.actor(x)`` and ``agent.critic(x)``; the agent's own parameters learn as well.
    """
    called: list[LayerInstance] = list(engine.roots)
    known = {id(layer) for layer in called}
    for owner in engine.owners:
        if id(owner) not in known and any(path and id(layer) in known for path, layer in owner.named_modules()):
            called.append(owner)
    return called


def _standing(machine: Machine) -> list[LayerInstance]:
    main = machine.importer.modules.get("__main__")
    names = main.attrs.values() if isinstance(main, Module) else ()
    return list({id(value): value for value in names if isinstance(value, LayerInstance)}.values())


def _sealed(trace: Trace) -> Trace:
    """The trace as it is now: what is freed when the machine goes away is not part of the script's life."""
    sealed = Trace(
        events=trace.events, phase=trace.phase, steps=trace.steps, limit=trace.limit, truncated=trace.truncated
    )
    trace.events = []
    return sealed
