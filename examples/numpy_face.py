"""The NumPy face in a page: running sums and products along an axis, views, and data that stays on the GPU."""

from __future__ import annotations

import numpy as np

import dmlgpu


def main() -> None:
    x = np.array([[1, 2, 3], [4, 5, 6]], dtype=np.float32)

    print("running sum along axis 1")
    print(dmlgpu.cumulative_sum(x, axis=1))

    print("exclusive running product from the end")
    print(dmlgpu.cumulative_prod(x, axis=1, exclusive=True, reverse=True))

    print("rounded, halves away from zero")
    print(dmlgpu.round(x / 2, mode="half_away"))

    # A DeviceArray stays on the GPU: the calls below transfer nothing until .numpy().
    with dmlgpu.asarray(x) as on_device:
        backwards = on_device[:, ::-1]  # a view, no copy
        totals = dmlgpu.cumulative_sum(backwards, axis=1)
        print("running sum of each row read backwards")
        print(totals.numpy())


if __name__ == "__main__":
    main()
