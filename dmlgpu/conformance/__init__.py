"""Thousands of cases, each with a readable name, that show whether a device gives the reference's bits.

``dmlgpu verify`` runs them; docs/portability.md says what they are and where they have been run. `suite` yields them,
`parse` finds one by its name, `check` runs one on a device, `checking` many, and `Digests` keep what
came out, to compare devices that never meet.
"""

from __future__ import annotations

from .cases import Case, ConvertCase, RoundCase, ScanCase, parse
from .checks import Outcome, check, checking, compute, digest, reference_outcome, share
from .digests import Digests, Disagreement, compare
from .placement import Placement
from .probes import Probe, probe
from .suite import suite

__all__ = [
    "Case",
    "ConvertCase",
    "Digests",
    "Disagreement",
    "Outcome",
    "Placement",
    "Probe",
    "RoundCase",
    "ScanCase",
    "check",
    "checking",
    "compare",
    "compute",
    "digest",
    "parse",
    "probe",
    "reference_outcome",
    "share",
    "suite",
]
