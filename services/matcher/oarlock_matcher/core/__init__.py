"""The matcher's pure core: which devices a task gets, and why.

`machine.decide(state, event, now) -> (state, effects)` is the only way in. What belongs here: values, filters, scores,
the queue, and the bookkeeping of leases as the matcher believes them. What does not: the bus, clocks, random sources,
files, retries, settings read from the environment. Every number that could differ between two calls is an argument.
"""
