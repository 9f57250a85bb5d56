"""Telemetry: what devices and runs really use, and the record that sets it beside what was predicted.

Belongs here: the inventory of a node, samples, a run's own share of them, run records, Prometheus metrics. Does not
belong here: how a vendor's tool is read (``oarlock_accelerators``), what is learned from a record (the profiler).
"""
