"""The DirectML face in a page: descriptions as in DirectML, and an error that names what breaks a rule."""

from __future__ import annotations

import numpy as np

from dmlgpu import directml as dml


def main() -> None:
    tensor = dml.DML_BUFFER_TENSOR_DESC(DataType=dml.DML_TENSOR_DATA_TYPE_FLOAT32, Sizes=(1, 1, 3, 4))
    summation = dml.DML_CUMULATIVE_SUMMATION_OPERATOR_DESC(
        InputTensor=tensor,
        OutputTensor=tensor,
        Axis=3,
        AxisDirection=dml.DML_AXIS_DIRECTION_DECREASING,
        HasExclusiveSum=True,
    )
    x = np.arange(1, 13, dtype=np.float32).reshape(1, 1, 3, 4)
    print("exclusive sum, decreasing, of")
    print(x[0, 0])
    print("is")
    print(dml.execute(summation, x)[0, 0])

    rounding = dml.DML_ELEMENT_WISE_ROUND_OPERATOR_DESC(
        InputTensor=tensor, OutputTensor=tensor, RoundingMode=dml.DML_ROUNDING_MODE_TOWARD_INFINITY
    )
    print("rounding of its halves")
    print(dml.execute(rounding, x / 2)[0, 0])

    half = dml.DML_BUFFER_TENSOR_DESC(DataType=dml.DML_TENSOR_DATA_TYPE_FLOAT16, Sizes=(1, 1, 3, 4))
    try:
        dml.execute(dml.DML_CUMULATIVE_SUMMATION_OPERATOR_DESC(InputTensor=tensor, OutputTensor=half, Axis=3), x)
    except dml.DirectMLError as error:
        print(f"0x{error.hresult:08X}: {error}")


if __name__ == "__main__":
    main()
