"""DMLCreateDevice, DMLCreateDevice1 and IDMLDevice: the beginning of DirectML's life cycle."""

# ruff: noqa: N802 (DirectML's names)
from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeAlias

import numpy as np

from ..errors import ArrayTypeError, DeviceError, DeviceReleasedError, DirectMLError, ShaderError
from ..lazy import resolve_device
from .constants import (
    DML_CREATE_DEVICE_FLAG_DEBUG,
    DML_CREATE_DEVICE_FLAG_NONE,
    DML_CREATE_DEVICE_FLAGS,
    DML_EXECUTION_FLAG_NONE,
    DML_EXECUTION_FLAGS,
    DML_FEATURE,
    DML_FEATURE_FEATURE_LEVELS,
    DML_FEATURE_LEVEL,
    DML_FEATURE_LEVEL_1_0,
    DML_FEATURE_LEVEL_6_4,
    DML_FEATURE_TENSOR_DATA_TYPE_SUPPORT,
    DML_TENSOR_DATA_TYPE,
    DXGI_ERROR_DEVICE_REMOVED,
    DXGI_ERROR_UNSUPPORTED,
    S_OK,
)
from .fields import a_kind_of, invalid_argument, to_enumerator
from .operators import IDMLCompiledOperator, IDMLObject, IDMLOperator, IDMLOperatorInitializer, check_operators
from .recorder import IDMLBindingTable, IDMLCommandRecorder
from .rules import DIRECTML, Description, introduced, support, validate_operator
from .structs import (
    DML_BINDING_TABLE_DESC,
    DML_FEATURE_DATA_FEATURE_LEVELS,
    DML_FEATURE_DATA_TENSOR_DATA_TYPE_SUPPORT,
    DML_FEATURE_QUERY_FEATURE_LEVELS,
    DML_FEATURE_QUERY_TENSOR_DATA_TYPE_SUPPORT,
)

if TYPE_CHECKING:
    from ..runtime.device import Device

__all__ = ["DMLCreateDevice", "DMLCreateDevice1", "IDMLDevice"]

FeatureData: TypeAlias = DML_FEATURE_DATA_TENSOR_DATA_TYPE_SUPPORT | DML_FEATURE_DATA_FEATURE_LEVELS


def DMLCreateDevice(
    device: Any = None,
    flags: DML_CREATE_DEVICE_FLAGS | int = DML_CREATE_DEVICE_FLAG_NONE,
    *,
    feature_level_cap: DML_FEATURE_LEVEL | int = DML_FEATURE_LEVEL_6_4,
    extensions: bool = False,
) -> IDMLDevice:
    """Return a DirectML device over a wgpu device, as `DMLCreateDevice1` with DML_FEATURE_LEVEL_1_0."""
    return _create("DMLCreateDevice", device, flags, DML_FEATURE_LEVEL_1_0, feature_level_cap, extensions)


def DMLCreateDevice1(
    device: Any = None,
    flags: DML_CREATE_DEVICE_FLAGS | int = DML_CREATE_DEVICE_FLAG_NONE,
    minimumFeatureLevel: DML_FEATURE_LEVEL | int = DML_FEATURE_LEVEL_1_0,
    *,
    feature_level_cap: DML_FEATURE_LEVEL | int = DML_FEATURE_LEVEL_6_4,
    extensions: bool = False,
) -> IDMLDevice:
    """Return a DirectML device over a wgpu device.

    Parameters
    ----------
    device : wgpu.GPUDevice, Device, str, int or None
        The caller's wgpu device, which stays the caller's; or what ``device=`` means elsewhere, None for the default.
    flags : DML_CREATE_DEVICE_FLAGS, optional
        DML_CREATE_DEVICE_FLAG_DEBUG lets dispatches recorded before initialization be found.
    minimumFeatureLevel : DML_FEATURE_LEVEL, optional
        The least level that the device must have. It is a check and no cap: the device has all it can, up to 6_4.
    feature_level_cap : DML_FEATURE_LEVEL, optional
        The level that the device answers by, to test code for older systems.
    extensions : bool, optional
        Whether to admit what no level of DirectML has and this package computes: INT8, UINT8, INT16, UINT16 and FLOAT64
        in scans of any dimension count, FLOAT64 in rounding. `CheckFeatureSupport` says so, too. Nothing else changes.

    Returns
    -------
    IDMLDevice

    Raises
    ------
    DirectMLError
        With DXGI_ERROR_UNSUPPORTED if `minimumFeatureLevel` is higher than what the device has, or if the wgpu device
        was requested with limits that no kernel can keep to; with E_INVALIDARG if `flags` or a level is none of the
        header's, with DXGI_ERROR_DEVICE_REMOVED if the wgpu device is lost.
    ArrayTypeError
        If an argument has another type.

    Examples
    --------
    >>> from dmlgpu import directml as dml
    >>> device = dml.DMLCreateDevice1(None, dml.DML_CREATE_DEVICE_FLAG_DEBUG, dml.DML_FEATURE_LEVEL_5_0)
    >>> device.CheckFeatureSupport(
    ...     dml.DML_FEATURE_TENSOR_DATA_TYPE_SUPPORT,
    ...     dml.DML_FEATURE_QUERY_TENSOR_DATA_TYPE_SUPPORT(dml.DML_TENSOR_DATA_TYPE_INT64),
    ... ).IsSupported
    True
    """
    return _create("DMLCreateDevice1", device, flags, minimumFeatureLevel, feature_level_cap, extensions)


def _create(
    here: str,
    device: Any,
    flags: DML_CREATE_DEVICE_FLAGS | int,
    minimumFeatureLevel: DML_FEATURE_LEVEL | int,
    feature_level_cap: DML_FEATURE_LEVEL | int,
    extensions: bool,
) -> IDMLDevice:
    """Do what the function of the name `here` is asked for."""
    options = to_enumerator(flags, DML_CREATE_DEVICE_FLAGS, f"{here}: flags")
    if not isinstance(options, DML_CREATE_DEVICE_FLAGS):
        raise invalid_argument(f"{here}: flags is {options:#x}; only DML_CREATE_DEVICE_FLAG_DEBUG (1) exists")
    cap = _level(feature_level_cap, f"{here}: feature_level_cap")
    least = to_enumerator(minimumFeatureLevel, DML_FEATURE_LEVEL, f"{here}: minimumFeatureLevel")
    if least > cap:
        raise DirectMLError(
            DXGI_ERROR_UNSUPPORTED,
            f"{here}: minimumFeatureLevel is {_shown(least)} while the device has {cap!r}; ask for that or a lower one",
        )
    _level(least, f"{here}: minimumFeatureLevel")
    if not isinstance(extensions, bool | np.bool_):
        raise ArrayTypeError(f"{here}: extensions is {a_kind_of(extensions)}; give it True or False")
    try:
        runtime = resolve_device(device)
    except DeviceReleasedError as error:
        raise DirectMLError(DXGI_ERROR_DEVICE_REMOVED, f"{here}: {error}") from error
    except DeviceError as error:
        # By what else than a device of the caller's one is found or opened, DirectML has no say.
        if type(error) is not DeviceError or device is None or isinstance(device, str | int):
            raise
        raise DirectMLError(DXGI_ERROR_UNSUPPORTED, f"{here}: {error}") from error
    made = IDMLDevice(runtime, options, cap, bool(extensions))
    made._check(here)
    return made


def _level(value: DML_FEATURE_LEVEL | int, where: str) -> DML_FEATURE_LEVEL:
    level = to_enumerator(value, DML_FEATURE_LEVEL, where)
    if not isinstance(level, DML_FEATURE_LEVEL):
        raise invalid_argument(f"{where} is {level:#x}; it must be a DML_FEATURE_LEVEL, such as DML_FEATURE_LEVEL_6_4")
    return level


def _shown(level: DML_FEATURE_LEVEL | int) -> str:
    return repr(level) if isinstance(level, DML_FEATURE_LEVEL) else f"{level:#x}"


class IDMLDevice(IDMLObject):
    """A DirectML device. Made by `DMLCreateDevice` and `DMLCreateDevice1`."""

    def __init__(
        self, runtime: Device, flags: DML_CREATE_DEVICE_FLAGS, level: DML_FEATURE_LEVEL, extensions: bool
    ) -> None:
        self._runtime = runtime
        self._debug = bool(flags & DML_CREATE_DEVICE_FLAG_DEBUG)
        self._level = level
        self._extensions = extensions

    def CheckFeatureSupport(self, feature: DML_FEATURE | int, featureQueryData: Any) -> FeatureData:
        """Ask for a feature.

        Parameters
        ----------
        feature : DML_FEATURE
            Which feature.
        featureQueryData : DML_FEATURE_QUERY_TENSOR_DATA_TYPE_SUPPORT or DML_FEATURE_QUERY_FEATURE_LEVELS
            The question that belongs to it.

        Returns
        -------
        DML_FEATURE_DATA_TENSOR_DATA_TYPE_SUPPORT or DML_FEATURE_DATA_FEATURE_LEVELS
            The answer, which C++ gets through its last argument.

        Raises
        ------
        DirectMLError
            With DXGI_ERROR_UNSUPPORTED if the feature is none of the header's or no requested level is there, with
            E_INVALIDARG if the question does not fit.
        """
        where = "IDMLDevice::CheckFeatureSupport"
        self._check(where)
        asked = to_enumerator(feature, DML_FEATURE, f"{where}: feature")
        if asked == DML_FEATURE_TENSOR_DATA_TYPE_SUPPORT:
            if isinstance(featureQueryData, DML_FEATURE_QUERY_TENSOR_DATA_TYPE_SUPPORT):
                return self._has_data_type(featureQueryData, where)
        elif asked == DML_FEATURE_FEATURE_LEVELS:
            if isinstance(featureQueryData, DML_FEATURE_QUERY_FEATURE_LEVELS):
                return self._feature_levels(featureQueryData, where)
        else:
            raise DirectMLError(DXGI_ERROR_UNSUPPORTED, f"{where}: feature is {asked!r}, which is no DML_FEATURE")
        found = "null" if featureQueryData is None else a_kind_of(featureQueryData)
        raise invalid_argument(f"{where}: feature is {asked!r} while featureQueryData is {found}; they must agree")

    def CreateOperator(self, desc: Description | None) -> IDMLOperator:
        """Return an operator, if its description keeps all rules.

        Parameters
        ----------
        desc : DML_OPERATOR_DESC or ``DML_..._OPERATOR_DESC``
            The description; an operator's own struct is enough.

        Raises
        ------
        DirectMLError
            With E_INVALIDARG, if a rule is broken; the message names it.
        """
        where = "IDMLDevice::CreateOperator"
        self._check(where)
        if desc is None:
            raise invalid_argument(f"{where}: desc is null; give it a DML_OPERATOR_DESC")
        return IDMLOperator(self, validate_operator(desc, feature_level=self._level, extensions=self._extensions))

    def CompileOperator(
        self, op: IDMLOperator | None, flags: DML_EXECUTION_FLAGS | int = DML_EXECUTION_FLAG_NONE
    ) -> IDMLCompiledOperator:
        """Return an operator with its shaders compiled.

        Parameters
        ----------
        op : IDMLOperator
            The operator.
        flags : DML_EXECUTION_FLAGS, optional
            All are accepted and none changes a result: FLOAT16 is computed in FLOAT32 in any case, there are no meta
            commands, and bindings are those of the moment of recording. With DML_EXECUTION_FLAG_DESCRIPTORS_VOLATILE,
            a table that was recorded takes no other bindings before its Reset, since what is recorded would not see
            them.

        Raises
        ------
        DirectMLError
            With E_INVALIDARG if an argument is wrong, with E_OUTOFMEMORY if a tensor or a resource that the operator
            needs is larger than the device's largest buffer or would take too many dispatches, with
            DXGI_ERROR_DEVICE_REMOVED if the device is lost.
        """
        where = "IDMLDevice::CompileOperator"
        self._check(where)
        if op is None:
            raise invalid_argument(f"{where}: op is null; give it an IDMLOperator")
        if not isinstance(op, IDMLOperator):
            raise ArrayTypeError(f"{where}: op is {a_kind_of(op)}; give it an IDMLOperator")
        if op._device is not self:
            raise invalid_argument(f"{where}: op was made by another IDMLDevice; make it with this one")
        options = to_enumerator(flags, DML_EXECUTION_FLAGS, f"{where}: flags")
        if not isinstance(options, DML_EXECUTION_FLAGS):
            raise invalid_argument(f"{where}: flags is {options:#x}; it must be a combination of DML_EXECUTION_FLAGS")
        try:
            return IDMLCompiledOperator(self, op._operator, options, op.Name)
        except (ShaderError, DeviceReleasedError):
            self._check(where)  # whether the device went away meanwhile, which is why nothing compiles
            raise

    def CreateOperatorInitializer(
        self,
        operatorCount: SupportsIndex = 0,
        operators: Iterable[IDMLCompiledOperator] | IDMLCompiledOperator | None = None,
    ) -> IDMLOperatorInitializer:
        """Return an initializer for compiled operators.

        Parameters
        ----------
        operatorCount : int
            The number of operators, which may be 0.
        operators : sequence of IDMLCompiledOperator
            The operators.

        Raises
        ------
        DirectMLError
            With E_INVALIDARG, if the count is wrong or an operator is another device's.
        """
        where = "IDMLDevice::CreateOperatorInitializer"
        self._check(where)
        return IDMLOperatorInitializer(self, check_operators(self, operatorCount, operators, where))

    def CreateCommandRecorder(self) -> IDMLCommandRecorder:
        """Return a command recorder."""
        self._check("IDMLDevice::CreateCommandRecorder")
        return IDMLCommandRecorder(self)

    def CreateBindingTable(self, desc: DML_BINDING_TABLE_DESC | None = None) -> IDMLBindingTable:
        """Return a binding table; without a description it needs a Reset before use.

        Raises
        ------
        DirectMLError
            With E_INVALIDARG, if the dispatchable is null or another device's, or SizeInDescriptors is too small.
        """
        self._check("IDMLDevice::CreateBindingTable")
        return IDMLBindingTable(self, desc)

    def GetDeviceRemovedReason(self) -> int:
        """Return S_OK, or DXGI_ERROR_DEVICE_REMOVED once the wgpu device is released, destroyed or lost."""
        return DXGI_ERROR_DEVICE_REMOVED if self._runtime.lost() else S_OK

    def GetParentDevice(self) -> Any:
        """Return the wgpu.GPUDevice that the device works on."""
        return self._runtime.gpu_device

    def _has_data_type(
        self, query: DML_FEATURE_QUERY_TENSOR_DATA_TYPE_SUPPORT, where: str
    ) -> DML_FEATURE_DATA_TENSOR_DATA_TYPE_SUPPORT:
        """Answer whether one of the operators takes an element type at the device's feature level."""
        if not isinstance(query.DataType, DML_TENSOR_DATA_TYPE):
            raise invalid_argument(f"{where}: DataType is {query.DataType!r}, which is no DML_TENSOR_DATA_TYPE")
        return DML_FEATURE_DATA_TENSOR_DATA_TYPE_SUPPORT(
            any(
                query.DataType in support(operator, self._level, extensions=self._extensions)
                for operator in DIRECTML
                if introduced(operator) <= self._level
            )
        )

    def _feature_levels(self, query: DML_FEATURE_QUERY_FEATURE_LEVELS, where: str) -> DML_FEATURE_DATA_FEATURE_LEVELS:
        """Answer the highest of some levels that the device has; numbers that are no level count as too high."""
        count, levels = query.RequestedFeatureLevelCount, query.RequestedFeatureLevels
        if count != len(levels):
            raise invalid_argument(
                f"{where}: RequestedFeatureLevelCount is {count} while RequestedFeatureLevels has {len(levels)}; they "
                "must agree"
            )
        if not levels:
            raise invalid_argument(f"{where}: RequestedFeatureLevels is empty; name at least one level")
        there = [one for one in levels if isinstance(one, DML_FEATURE_LEVEL) and one <= self._level]
        if not there:
            raise DirectMLError(
                DXGI_ERROR_UNSUPPORTED,
                f"{where}: RequestedFeatureLevels is {', '.join(map(_shown, levels))} while the device has "
                f"{self._level!r}",
            )
        return DML_FEATURE_DATA_FEATURE_LEVELS(max(there))

    def _check(self, where: str) -> None:
        """Raise DXGI_ERROR_DEVICE_REMOVED from a call after the device has gone."""
        if self._runtime.lost():
            raise DirectMLError(
                DXGI_ERROR_DEVICE_REMOVED,
                f"{where}: the wgpu device was released, destroyed or lost; make another with DMLCreateDevice",
            )
