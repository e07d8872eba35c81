"""
The gradients of a volume larger than memory, with Dask
=======================================================

Compute the gradients of a volume that is larger than the memory they may use, with Dask and Zarr.

    python docs/examples/example_dask_volume.py --gib 2

It writes a random volume x of this size into a temporary folder. Then it computes y = conv(x, w) and the gradients dx
and dw of the loss (y * y).sum() / 2, and writes dx to another Zarr array. No array is ever in memory as a whole: the
last line shows the largest memory that the process had.

    python docs/examples/example_dask_volume.py --workers 2

does the same with a cluster of two processes. On several machines, give ``Client`` the address of their scheduler.
"""

import argparse
import resource
import sys
import tempfile
from pathlib import Path
from time import perf_counter

try:
    import dask
    import dask.array as da
    import numpy as np
    import zarr
    from dask.diagnostics import ProgressBar
    from dask.distributed import Client, LocalCluster, progress

    import convgrad_cy.dask as cd
except ImportError as error:
    sys.exit(f"{error}\nThis example needs Dask and Zarr: pip install 'PATH_OF_THE_CLONE[dask]'")

CHANNELS, FILTER = 16, 3


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gib", type=float, default=2, help="size of the volume in GiB (default: 2)")
    parser.add_argument("--block", type=int, default=64, help="edge of a block of the volume (default: 64)")
    parser.add_argument("--workers", type=int, default=0, help="processes; 0: threads of this process (default: 0)")
    parser.add_argument("--folder", type=Path, help="where to put the volumes (default: the system's temporary folder)")
    return parser.parse_args()


def compute(title, *lazy, client=None):
    """The results of lazy arrays and stores, with a progress bar."""
    print(title, flush=True)
    start = perf_counter()
    if client is None:
        with ProgressBar(dt=0.5):
            results = dask.compute(*lazy)
    else:
        futures = client.compute(lazy)
        progress(futures, notebook=False)
        results = client.gather(futures)
    print(f"\n{perf_counter() - start:.1f} s", flush=True)
    return results


def peak_gib():
    """The largest memory that this process had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def run(options, folder, client):
    # Long rather than wide: about three layers of blocks are in memory, because neighbours need their halos.
    layers = max(1, round(options.gib * 2**30 / (4 * CHANNELS * (2 * options.block) ** 2 * options.block)))
    shape = 1, CHANNELS, layers * options.block, 2 * options.block, 2 * options.block
    chunks = 1, CHANNELS, options.block, options.block, options.block
    random = da.random.default_rng(0)
    volume = random.standard_normal(shape, dtype="float32", chunks=chunks)
    compute(f"write a volume of {volume.nbytes / 2**30:.2f} GiB", store(volume, folder / "x.zarr"), client=client)

    x = da.from_zarr(folder / "x.zarr")
    w = np.random.default_rng(0).standard_normal((CHANNELS, CHANNELS, FILTER, FILTER, FILTER), dtype="float32")
    y = cd.conv(x, w, padding=1)  # x and y have blocks of one size, so dy = y fits to x
    dw = cd.conv_backward_filter(x, y, w.shape, padding=1)
    dx = cd.conv_backward_data(y, w, x.shape, padding=1)
    title = f"conv, conv_backward_filter and conv_backward_data of {x.npartitions} blocks"
    dw, _ = compute(title, dw, store(dx, folder / "dx.zarr"), client=client)
    print(f"norm of dw: {np.linalg.norm(dw):.6g}, dx: {da.from_zarr(folder / 'dx.zarr')}")
    peaks = [peak_gib(), *(client.run(peak_gib).values() if client else ())]
    print("peak memory of each process: " + ", ".join(f"{peak:.2f} GiB" for peak in peaks))


def store(array, path):
    """A lazy copy of a Dask array into a new Zarr array, with a chunk for each block."""
    target = zarr.create_array(path, shape=array.shape, chunks=array.chunksize, dtype=array.dtype, compressors=None)
    return da.store(array, target, lock=False, compute=False)


def main():
    options = arguments()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        if options.workers == 0:
            run(options, Path(folder), None)
            return
        workers = {"n_workers": options.workers, "threads_per_worker": 1, "dashboard_address": None}
        with LocalCluster(**workers) as cluster, Client(cluster) as client:
            run(options, Path(folder), client)


if __name__ == "__main__":
    main()
