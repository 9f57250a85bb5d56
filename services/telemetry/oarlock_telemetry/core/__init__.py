"""Telemetry's pure core: whose process is whose, what a run's samples add up to, and when its record is written.

``follow.decide(state, event, now) -> (state, effects)`` is the way in for what happens to runs. What does not belong
here: sampling, /proc, the bus, clocks.
"""
