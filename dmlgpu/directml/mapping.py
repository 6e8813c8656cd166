"""From a valid operator description to the problem that the kernels solve."""

from __future__ import annotations

from ..planning.problem import ElementwiseProblem, Operator, RoundingMode, ScanProblem, round_problem, scan_problem
from .constants import DML_AXIS_DIRECTION_DECREASING
from .operator_rules import ValidOperator
from .operator_structs import DML_CUMULATIVE_SUMMATION_OPERATOR_DESC, DML_ELEMENT_WISE_ROUND_OPERATOR_DESC
from .tensor_rules import layout

__all__ = ["operator_problem"]


def operator_problem(
    operator: ValidOperator, *, input_offset: int = 0, output_offset: int = 0
) -> ScanProblem | ElementwiseProblem:
    """Return the problem of an operator whose tensors lie in buffers.

    Parameters
    ----------
    operator : ValidOperator
        The operator.
    input_offset, output_offset : int
        The position of each tensor's first element in its buffer, in elements.
    """
    source = layout(operator.input, input_offset)
    target = layout(operator.output, output_offset)
    desc = operator.desc
    if isinstance(desc, DML_ELEMENT_WISE_ROUND_OPERATOR_DESC):
        return round_problem(operator.element, RoundingMode(desc.RoundingMode), source, target)
    if isinstance(desc, DML_CUMULATIVE_SUMMATION_OPERATOR_DESC):
        kind, exclusive = Operator.SUM, desc.HasExclusiveSum
    else:
        kind, exclusive = Operator.PRODUCT, desc.HasExclusiveProduct
    return scan_problem(
        operator.element,
        kind,
        source,
        target,
        axis=desc.Axis,
        exclusive=exclusive,
        reverse=desc.AxisDirection == DML_AXIS_DIRECTION_DECREASING,
    )
