"""The simulator: the very core that serves for real, under a virtual clock.

What belongs here: reading fleets and workloads from files, driving `core.machine.decide` with them, and reporting. What
does not: any decision of its own. `simulate` is the library function, `run` what `oarlock simulate` calls.
"""

from oarlock_matcher.simulator.cli import run
from oarlock_matcher.simulator.experiments import simulate

__all__ = ["run", "simulate"]
