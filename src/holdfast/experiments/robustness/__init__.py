"""Robustness: solvers on recorded problems."""
