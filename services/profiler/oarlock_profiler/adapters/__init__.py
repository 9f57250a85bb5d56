"""The profiler's edges: bundles, the catalogue of devices, and the process that reads."""
