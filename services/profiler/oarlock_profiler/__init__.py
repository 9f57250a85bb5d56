"""Reads a training script, without running it, and says what hardware it needs.

Belongs here: the reader (``core``), the worker process it runs in and the bus handlers around it.
Does not belong here: choosing devices, starting anything, or importing a deep-learning framework.
"""
