"""Scan a dask array on a cluster of processes, and an xarray of dask chunks: the bits are those of one call.

python examples/dask_cluster.py [--rows 2000000] [--workers 2]
"""

from __future__ import annotations

import argparse
import sys

import dask.array as da
import numpy as np
import xarray
from dask.distributed import Client, LocalCluster

import dmlgpu


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args(argv)
    x = np.random.default_rng(1).standard_normal((arguments.rows, 4)).astype(np.float32)
    x[arguments.rows // 2 :, 0] *= np.float32(1e37)  # which overflows, in the same places as in one call
    chunks = da.from_array(x, chunks=(arguments.rows // 16, 2))
    # A worker for each device: give each its own DMLGPU_ADAPTER, as env= of a cluster of another kind does.
    options = {"n_workers": arguments.workers, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**options) as cluster, Client(cluster):
        totals = dmlgpu.cumulative_sum(chunks, axis=0)
        found = totals.compute()
        table = xarray.DataArray(chunks, dims=("time", "place"))
        mapped = xarray.apply_ufunc(dmlgpu.cumulative_sum, table, kwargs={"axis": 0}, dask="allowed")
        as_table = mapped.compute()
        theirs = da.cumsum(chunks, axis=0).compute()
    expected = dmlgpu.cumulative_sum(x, axis=0)
    same = found.tobytes() == expected.tobytes()
    same_table = as_table.to_numpy().tobytes() == expected.tobytes()
    in_memory = np.cumsum(x, axis=0)
    different = int(np.count_nonzero((theirs != in_memory) & ~(np.isnan(theirs) & np.isnan(in_memory))))
    print(f"{chunks.npartitions} chunks on {arguments.workers} processes have the bits of one call: {same}")
    print(f"so has the xarray, with dimensions {as_table.dims}: {same_table}")
    print(f"dask.array.cumsum differs from numpy.cumsum in {different} of {x.size} elements")
    return 0 if same and same_table else 1


if __name__ == "__main__":
    sys.exit(main())
