"""DirectML's names, structs and rules: ``from dmlgpu import directml as dml``."""

from __future__ import annotations

from ..errors import DirectMLError
from . import constants, hresults, operator_structs, tensor_structs
from .constants import *  # noqa: F403
from .execute import execute
from .hresults import *  # noqa: F403
from .operator_structs import *  # noqa: F403
from .tensor_structs import *  # noqa: F403

__all__ = ["DirectMLError", "execute"]
__all__ += constants.__all__
__all__ += hresults.__all__
__all__ += operator_structs.__all__
__all__ += tensor_structs.__all__
