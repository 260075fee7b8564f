"""Islands: sets of trees that constraints connect, solved apart."""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

import numpy as np

from holdfast._jit import kernel
from holdfast.contact.arrays import Arrays, ContactState

LEFT_OUT = int(ContactState.LEFT_OUT)


@kernel
def find_root(parent_inout: np.ndarray, t: int) -> int:
    """Return the root of a tree's set, halving the path to it."""
    while parent_inout[t] != t:
        parent_inout[t] = parent_inout[parent_inout[t]]
        t = parent_inout[t]
    return t


@kernel
def takes_part(a: Arrays, state: np.ndarray, i: int) -> bool:
    """Return whether constraint i touches a tree and is not left out."""
    return a.panel[i + 1] > a.panel[i] and state[i] != LEFT_OUT


@kernel
def find_islands(a: Arrays, state: np.ndarray, parent_work: np.ndarray,
                 island_of_tree_out: np.ndarray, tree_out: np.ndarray,
                 tree_begin_out: np.ndarray, constraint_out: np.ndarray,
                 constraint_begin_out: np.ndarray) -> int:  # fmt: skip
    """Fill the trees and constraints of each island; return how many islands there are.

    Islands are numbered in the order of their first trees, and list trees and constraints in the
    order of the problem. Trees without constraints belong to no island (-1).
    """
    trees, n = a.tree.shape[0] - 1, a.law.shape[0]
    for t in range(trees):
        parent_work[t] = t
        island_of_tree_out[t] = -1
    for i in range(n):
        if not takes_part(a, state, i):
            continue
        root = find_root(parent_work, a.panel_tree[a.panel[i]])
        island_of_tree_out[a.panel_tree[a.panel[i]]] = 0
        for p in range(a.panel[i] + 1, a.panel[i + 1]):
            island_of_tree_out[a.panel_tree[p]] = 0
            other = find_root(parent_work, a.panel_tree[p])
            if other != root:
                low, high = min(root, other), max(root, other)
                parent_work[high] = low
                root = low
    count = 0
    for t in range(trees):  # roots are the first of their sets
        if island_of_tree_out[t] >= 0:
            root = find_root(parent_work, t)
            if root == t:
                island_of_tree_out[t] = count
                tree_begin_out[count] = constraint_begin_out[count] = 0
                count += 1
            else:
                island_of_tree_out[t] = island_of_tree_out[root]
            tree_begin_out[island_of_tree_out[t]] += 1
    for i in range(n):
        if takes_part(a, state, i):
            constraint_begin_out[island_of_tree_out[a.panel_tree[a.panel[i]]]] += 1
    at, first = 0, 0
    for k in range(count):  # counts to ends
        at += tree_begin_out[k]
        tree_begin_out[k] = at
        first += constraint_begin_out[k]
        constraint_begin_out[k] = first
    tree_begin_out[count], constraint_begin_out[count] = at, first
    for t in range(trees - 1, -1, -1):  # ends to beginnings
        k = island_of_tree_out[t]
        if k >= 0:
            tree_begin_out[k] -= 1
            tree_out[tree_begin_out[k]] = t
    for i in range(n - 1, -1, -1):
        if takes_part(a, state, i):
            k = island_of_tree_out[a.panel_tree[a.panel[i]]]
            constraint_begin_out[k] -= 1
            constraint_out[constraint_begin_out[k]] = i
    return count
