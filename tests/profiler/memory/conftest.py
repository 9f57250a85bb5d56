"""The generators of ``benchmarks`` are used here as well: the repository's root goes on the path."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
