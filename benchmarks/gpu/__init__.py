"""Measured on a machine with a CUDA device and torch, scored anywhere: ``measure`` writes JSON, ``score`` compares."""
