"""Solve frictional contact problems with Siconos, for `coulomb_peers.py`.

Runs under whichever interpreter has Siconos (Debian's python3-siconos: /usr/bin/python3), reads
problems from its standard input and writes answers to its standard output, each a length of eight
bytes and an .npz file. Times are taken here, around Siconos' own call.
"""

import io
import os
import sys
import time

import numpy as np
import scipy.sparse
import siconos.numerics as sn

METHODS = {
    "NSGS": sn.SICONOS_FRICTION_3D_NSGS,
    "NSN_AC": sn.SICONOS_FRICTION_3D_NSN_AC,
    "ADMM": sn.SICONOS_FRICTION_3D_ADMM,
}
BALANCING = sn.SICONOS_FRICTION_3D_ADMM_RHO_STRATEGY_RESIDUAL_BALANCING


def matrix(W, sparse):
    """W as Siconos wants it."""
    if not sparse:
        return np.asfortranarray(W)
    out = scipy.sparse.csc_matrix(W)
    out.indices, out.indptr = out.indices.astype(np.int64), out.indptr.astype(np.int64)
    return out


def solve(given):
    """Solve one problem cold, again and again for a while; every time in seconds."""
    W, q, mu = given["W"], given["q"], given["mu"]
    begin = time.perf_counter()
    problem = sn.FrictionContactProblem(3, len(mu), matrix(W, bool(given["sparse"])), q, mu)
    build, seconds, begin = time.perf_counter() - begin, [], time.perf_counter()
    while True:
        options = sn.SolverOptions(METHODS[str(given["method"])])
        options.dparam[sn.SICONOS_DPARAM_TOL] = float(given["tolerance"])
        options.iparam[sn.SICONOS_IPARAM_MAX_ITER] = int(given["iterations"])
        if str(given["method"]) == "ADMM":  # solves far more than with a constant rho, the default
            options.iparam[sn.SICONOS_FRICTION_3D_ADMM_IPARAM_RHO_STRATEGY] = BALANCING
        r, u = np.zeros(len(q)), np.zeros(len(q))
        start = time.perf_counter()
        info = sn.fc3d_driver(problem, r, u, options)
        end = time.perf_counter()
        seconds.append(end - start)
        if end - begin > float(given["seconds"]) or len(seconds) > int(given["rounds"]):
            break
    steps = options.iparam[sn.SICONOS_IPARAM_ITER_DONE]
    return {"r": r, "seconds": seconds, "build": build, "info": info, "iterations": steps}


def main():
    """Answer until the input ends."""
    source, target = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)  # Siconos prints
    os.dup2(silence, 2)
    sn.numerics_set_verbose(0)
    while True:
        head = source.read(8)
        if len(head) < 8:
            return
        with np.load(io.BytesIO(source.read(int.from_bytes(head, "little")))) as given:
            answer = solve(dict(given))
        buffer = io.BytesIO()
        np.savez(buffer, **answer)
        data = buffer.getvalue()
        target.write(len(data).to_bytes(8, "little") + data)
        target.flush()


if __name__ == "__main__":
    sys.exit(main())
