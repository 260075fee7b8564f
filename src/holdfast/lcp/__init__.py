"""Linear complementarity problems: the mathematics under the contact models."""

from holdfast.lcp.dense import DenseLCP, solve
from holdfast.lcp.factored import FactoredLCP, solve_factored
from holdfast.lcp.find_indices import Indices, find_indices
from holdfast.lcp.mlcp import MLCP, ReducedMLCP, reduce_mlcp
from holdfast.lcp.options import Options
from holdfast.lcp.result import LCPResult, Residuals
from holdfast.lcp.rows import BlockRows
from holdfast.lcp.status import Status

__all__ = [
    "MLCP",
    "BlockRows",
    "DenseLCP",
    "FactoredLCP",
    "Indices",
    "LCPResult",
    "Options",
    "ReducedMLCP",
    "Residuals",
    "Status",
    "find_indices",
    "reduce_mlcp",
    "solve",
    "solve_factored",
]
