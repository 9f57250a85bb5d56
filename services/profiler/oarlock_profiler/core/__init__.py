"""The pure reader: source text in, portrait out. No clock, no file system, no network, no framework.

Rooms, in the order data flows: ``interpreter`` executes the script's Python abstractly; ``overlays`` say what
framework calls mean; ``engine`` holds tensors and autograd and writes the trace; ``memory``, ``cost`` and ``advice``
turn a trace into numbers; ``portrait`` puts them in words.
"""
