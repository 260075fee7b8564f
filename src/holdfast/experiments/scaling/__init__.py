"""Scaling: time over the numbers of coordinates and contacts."""
