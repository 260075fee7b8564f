"""Locomotion: a quadruped that trots (Tables 2 and 3 of the paper)."""
