"""Benchmarks on the user's machine: steps, rollouts and solvers beside those of others."""
