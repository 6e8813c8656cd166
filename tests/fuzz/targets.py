"""Every target, by name."""

from __future__ import annotations

from .archives import NPZ, PARQUET
from .files import CSV, JSON, NPY
from .plans import PLANS
from .programs import PROGRAMS
from .target import Target

TARGETS: dict[str, Target] = {target.name: target for target in (PROGRAMS, PLANS, NPY, NPZ, CSV, PARQUET, JSON)}
