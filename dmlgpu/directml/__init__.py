"""DirectML's names, structs, rules and objects: ``from dmlgpu import directml as dml``."""

from __future__ import annotations

from ..errors import DirectMLError
from . import (
    binding_structs,
    binding_table,
    constants,
    device,
    feature_structs,
    hresults,
    initializer,
    objects,
    operator_structs,
    recorder,
    tensor_structs,
)
from .binding_structs import *  # noqa: F403
from .binding_table import *  # noqa: F403
from .constants import *  # noqa: F403
from .device import *  # noqa: F403
from .execute import execute
from .feature_structs import *  # noqa: F403
from .hresults import *  # noqa: F403
from .initializer import *  # noqa: F403
from .objects import *  # noqa: F403
from .operator_structs import *  # noqa: F403
from .recorder import *  # noqa: F403
from .tensor_structs import *  # noqa: F403

__all__ = ["DirectMLError", "execute"]
__all__ += binding_structs.__all__
__all__ += binding_table.__all__
__all__ += constants.__all__
__all__ += device.__all__
__all__ += feature_structs.__all__
__all__ += hresults.__all__
__all__ += initializer.__all__
__all__ += objects.__all__
__all__ += operator_structs.__all__
__all__ += recorder.__all__
__all__ += tensor_structs.__all__
