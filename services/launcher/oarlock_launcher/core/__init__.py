"""The launcher's pure core: the life of a run, what is started, and how an end is understood.

``decide.decide(state, event, now) -> (state, effects)`` is the way in for everything that happens to runs; the other
modules are functions of plain values. What does not belong here: the bus, processes, Docker, files, clocks.
"""
