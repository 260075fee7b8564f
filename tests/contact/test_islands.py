"""Islands: what constraints connect is solved together, the rest apart."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from holdfast import ContactProblem, Coulomb
from holdfast._jit import entry
from holdfast.contact.arrays import LawKind
from holdfast.contact.build import build_arrays
from holdfast.contact.islands import find_islands
from holdfast.models._newton import make_laws


@entry
def islands_of(a, state, parent, of_tree, tree, tree_begin, constraint, constraint_begin):
    return find_islands(a, state, parent, of_tree, tree, tree_begin, constraint, constraint_begin)


def scattered(seed: int, bodies: int, contacts: int) -> ContactProblem:
    """Points in space that touch each other in pairs."""
    rng = np.random.default_rng(seed)
    N, S, T = np.zeros((3, contacts, 3 * bodies))
    for i in range(contacts):
        pair = (
            rng.choice(bodies, 2, replace=False) if rng.random() < 0.7 else [rng.integers(bodies)]
        )
        for rows, axis in zip((N, S, T), np.linalg.qr(rng.normal(size=(3, 3)))[0], strict=True):
            for body, sign in zip(pair, (1.0, -1.0), strict=False):
                rows[i, 3 * body : 3 * body + 3] = sign * axis
    M = np.tile(np.eye(3), (bodies, 1, 1)) * rng.uniform(0.5, 2.0, bodies)[:, None, None]
    return ContactProblem(M=M, v=rng.normal(size=3 * bodies), N=N, S=S, T=T, mu=0.5)


@given(st.integers(0, 2**32 - 1), st.integers(2, 12), st.integers(0, 10))
def test_islands_are_connected_components(seed: int, bodies: int, contacts: int) -> None:
    p = scattered(seed, bodies, contacts)
    a = build_arrays(p, make_laws(p, np.full(p.n, int(LawKind.COULOMB)), p.mu))
    one, two = np.zeros((4, bodies + 1), dtype=np.int64), np.zeros((2, contacts + 1), np.int64)
    begin = np.zeros(bodies + 1, dtype=np.int64)
    state = np.zeros(p.n, dtype=np.int64)
    count = islands_of(a, state, one[0], one[1], one[2], one[3], two[0], begin)
    pairs = [a.panel_tree[a.panel[i] : a.panel[i + 1]] for i in range(p.n)]
    edges = np.array([(pair[0], pair[-1]) for pair in pairs], dtype=int).reshape(-1, 2)
    graph = coo_array((np.ones(len(edges)), edges.T), shape=(bodies, bodies))
    label = connected_components(graph, directed=False)[1]
    touched = np.unique(edges)
    assert count == len(np.unique(label[touched]))
    assert (one[1][:bodies][np.setdiff1d(np.arange(bodies), touched)] == -1).all()
    for k in range(count):
        members = two[0][begin[k] : begin[k + 1]]
        mine = one[2][one[3][k] : one[3][k + 1]]
        assert len(np.unique(label[mine])) == 1
        np.testing.assert_array_equal(members, [i for i in range(p.n) if edges[i, 0] in mine])


@given(st.integers(0, 2**32 - 1))
def test_islands_do_not_know_of_each_other(seed: int) -> None:
    """Two problems side by side are solved to the same bits as each alone."""
    first, second = scattered(seed, 3, 3), scattered(seed + 1, 4, 4)
    rows = {
        name: np.vstack([
            np.hstack([getattr(first, name), np.zeros((first.n, second.m))]),
            np.hstack([np.zeros((second.n, first.m)), getattr(second, name)]),
        ])
        for name in "NST"
    }  # fmt: skip
    v, M = np.concatenate([first.v, second.v]), np.concatenate([first.M, second.M])
    both = Coulomb(mu=0.5).solve(ContactProblem(M=M, v=v, **rows))
    alone = np.concatenate([Coulomb().solve(problem).velocity for problem in (first, second)])
    np.testing.assert_array_equal(both.velocity, alone)
