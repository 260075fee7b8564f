"""Solve a frictional contact problem with Siconos, again and again.

Runs as a script under whichever interpreter has Siconos (Debian's python3-siconos:
/usr/bin/python3). Reads the problem from its standard input, then a byte for each solve; writes
impulses and seconds to its standard output. Messages are a length of eight bytes and an .npz file.
"""

import importlib
import io
import os
import time

import numpy as np


def send(stream, arrays):
    """Write a message."""
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    data = buffer.getvalue()
    stream.write(len(data).to_bytes(8, "little") + data)
    stream.flush()


def receive(stream):
    """Read a message."""
    size = int.from_bytes(stream.read(8), "little")
    if not size:
        raise EOFError
    with np.load(io.BytesIO(stream.read(size))) as arrays:
        return dict(arrays)


def main():
    """Answer until the input ends."""
    sn = importlib.import_module("siconos.numerics")

    methods = {
        "NSGS": sn.SICONOS_FRICTION_3D_NSGS,
        "NSN_AC": sn.SICONOS_FRICTION_3D_NSN_AC,
    }
    source, target = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what Siconos prints
    given = receive(source)
    q, mu = given["q"], given["mu"]
    problem = sn.FrictionContactProblem(3, len(mu), np.asfortranarray(given["W"]), q, mu)
    while source.read(1):
        options = sn.SolverOptions(methods[str(given["method"])])
        options.dparam[sn.SICONOS_DPARAM_TOL] = float(given["tolerance"])
        options.iparam[sn.SICONOS_IPARAM_MAX_ITER] = int(given["iterations"])
        r, u = np.zeros(len(q)), np.zeros(len(q))
        begin = time.perf_counter()
        sn.fc3d_driver(problem, r, u, options)
        send(target, {"r": r, "seconds": time.perf_counter() - begin})


if __name__ == "__main__":
    main()
