"""Chooses the devices a task gets, books them, and keeps the queue.

Belongs here: placement and everything it is decided by. Does not belong here: sizing a task (the profiler), starting
it (the launcher), or measuring anything (telemetry).
"""
