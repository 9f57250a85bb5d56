"""What the real frameworks do, measured in an environment of their own, beside what the engine says.

No framework is imported here.
"""
