"""DirectML's names, structs, rules and objects: ``from dmlgpu import directml as dml``."""

from __future__ import annotations

from ..errors import DirectMLError as DirectMLError
from . import constants, idml_device, operators, recorder, structs
from .constants import *  # noqa: F403
from .execute import execute as execute
from .idml_device import *  # noqa: F403
from .operators import *  # noqa: F403
from .recorder import *  # noqa: F403
from .structs import *  # noqa: F403

# No statement assigns __all__ here, for the reason that is given at the end of `constants`.
globals()["__all__"] = [
    "DirectMLError",
    "execute",
    *(name for module in (constants, idml_device, operators, recorder, structs) for name in vars(module)["__all__"]),
]
