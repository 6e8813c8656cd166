"""DirectMLX's style in short: build an expression of operators, compile it once, run it in one submission.

In C++ DirectMLX compiles a graph into one operator through IDMLDevice1::CompileGraph. Here an expression is the chain
of its operators, and its evaluation one command encoder with a RecordDispatch for each of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import wgpu
from numpy.typing import NDArray

import dmlgpu
from dmlgpu import directml as dml

_USAGE = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST


@dataclass(frozen=True)
class Expression:
    """A tensor: an input, or what an operator makes of another expression."""

    desc: dml.DML_BUFFER_TENSOR_DESC
    operator: Any = None
    operand: Expression | None = None


def InputTensor(data_type: dml.DML_TENSOR_DATA_TYPE, *sizes: int) -> Expression:  # noqa: N802
    return Expression(dml.DML_BUFFER_TENSOR_DESC(data_type, Sizes=sizes))


def CumulativeSummation(  # noqa: N802
    input: Expression,
    axis: int,
    axisDirection: dml.DML_AXIS_DIRECTION = dml.DML_AXIS_DIRECTION_INCREASING,
    hasExclusiveSum: bool = False,
) -> Expression:
    t = packed(input.desc)
    desc = dml.DML_CUMULATIVE_SUMMATION_OPERATOR_DESC(input.desc, t, axis, axisDirection, hasExclusiveSum)
    return Expression(t, desc, input)


def CumulativeProduct(  # noqa: N802
    input: Expression,
    axis: int,
    axisDirection: dml.DML_AXIS_DIRECTION = dml.DML_AXIS_DIRECTION_INCREASING,
    hasExclusiveProduct: bool = False,
) -> Expression:
    t = packed(input.desc)
    desc = dml.DML_CUMULATIVE_PRODUCT_OPERATOR_DESC(input.desc, t, axis, axisDirection, hasExclusiveProduct)
    return Expression(t, desc, input)


def Round(  # noqa: N802
    input: Expression,
    roundingMode: dml.DML_ROUNDING_MODE = dml.DML_ROUNDING_MODE_HALVES_TO_NEAREST_EVEN,
) -> Expression:
    t = packed(input.desc)
    return Expression(t, dml.DML_ELEMENT_WISE_ROUND_OPERATOR_DESC(input.desc, t, roundingMode), input)


def packed(desc: dml.DML_BUFFER_TENSOR_DESC) -> dml.DML_BUFFER_TENSOR_DESC:
    return dml.DML_BUFFER_TENSOR_DESC(desc.DataType, Sizes=desc.Sizes)


@dataclass
class Graph:
    """A compiled expression. All its operators work in place, in one buffer."""

    device: dml.IDMLDevice
    output: Expression
    _steps: list[tuple[dml.IDMLCompiledOperator, dml.IDMLBindingTable]] = field(default_factory=list)

    def __post_init__(self) -> None:
        gpu = self.device.GetParentDevice()
        self._recorder = self.device.CreateCommandRecorder()
        self._buffer = gpu.create_buffer(size=self.output.desc.TotalTensorSizeInBytes, usage=_USAGE)
        chain = []
        node = self.output
        while node.operand is not None:
            chain.append(node.operator)
            node = node.operand
        operators = [self.device.CompileOperator(self.device.CreateOperator(desc)) for desc in reversed(chain)]
        scratch = max((one.GetBindingProperties().TemporaryResourceSize for one in operators), default=0)
        temporary = gpu.create_buffer(size=scratch, usage=wgpu.BufferUsage.STORAGE) if scratch else None
        initializer = self.device.CreateOperatorInitializer(len(operators), operators)
        encoder = gpu.create_command_encoder()
        table = self.device.CreateBindingTable(dml.DML_BINDING_TABLE_DESC(initializer))
        self._recorder.RecordDispatch(encoder, initializer, table)
        gpu.queue.submit([encoder.finish()])
        for operator in operators:
            table = self.device.CreateBindingTable(dml.DML_BINDING_TABLE_DESC(operator))
            table.BindInputs(1, _binding(self._buffer))
            table.BindOutputs(1, _binding(self._buffer))
            table.BindTemporaryResource(_binding(temporary) if temporary else None)
            self._steps.append((operator, table))

    def __call__(self, x: NDArray[Any]) -> NDArray[Any]:
        """Evaluate the expression over an array of the input's type and sizes."""
        gpu = self.device.GetParentDevice()
        gpu.queue.write_buffer(self._buffer, 0, np.ascontiguousarray(x))
        encoder = gpu.create_command_encoder()
        for operator, table in self._steps:
            self._recorder.RecordDispatch(encoder, operator, table)
        gpu.queue.submit([encoder.finish()])
        return np.frombuffer(gpu.queue.read_buffer(self._buffer), x.dtype).reshape(x.shape)


def _binding(buffer: Any) -> dml.DML_BINDING_DESC:
    return dml.DML_BINDING_DESC(dml.DML_BINDING_TYPE_BUFFER, dml.DML_BUFFER_BINDING(buffer))


def main() -> None:
    # What ten dollars grow to in four years at yearly rates, forwards in time along axis 1, in whole dollars.
    growth = np.array([[10, 1.05, 1.05, 1.05], [10, 1.10, 1.20, 0.80]], dtype=np.float32)

    x = InputTensor(dml.DML_TENSOR_DATA_TYPE_FLOAT32, 2, 4)
    y = Round(CumulativeProduct(x, axis=1), dml.DML_ROUNDING_MODE_TOWARD_INFINITY)
    z = CumulativeSummation(y, axis=0)

    device = dml.DMLCreateDevice(dmlgpu.default_device())
    graph = Graph(device, z)
    print("rates\n", growth, sep="")
    print("both accounts together\n", graph(growth), sep="")
    print("and with double the money\n", graph(growth * np.array([2, 1, 1, 1], dtype=np.float32)), sep="")


if __name__ == "__main__":
    main()
