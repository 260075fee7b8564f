"""A terrain map: bumps of centimetres, drawn from a seed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

SAMPLES = 250  # along each side, as in the original
SIDE = 1.0  # [m]
PEAK = 0.03  # [m] from the lowest to the highest place
WAVES = 60
SHORTEST, LONGEST = 0.15, 0.5  # wavelengths [m]: feet of 1 cm fit into every hollow


@dataclass(frozen=True, eq=False)
class Terrain:
    """Heights over a square about the origin.

    Attributes:
        heights: (rows along y, columns along x) [m], the lowest is 0.
        side: of the square [m].
    """

    heights: np.ndarray
    side: float = SIDE

    def height(self, x: float, y: float) -> float:
        """Between the samples, linear in x and in y; beyond the edge, that of the edge."""
        rows, columns = self.heights.shape
        u = np.clip((x / self.side + 0.5) * (columns - 1), 0.0, columns - 1)
        v = np.clip((y / self.side + 0.5) * (rows - 1), 0.0, rows - 1)
        i, j = min(int(v), rows - 2), min(int(u), columns - 2)
        s, t = u - j, v - i
        low = (1 - s) * self.heights[i, j] + s * self.heights[i, j + 1]
        high = (1 - s) * self.heights[i + 1, j] + s * self.heights[i + 1, j + 1]
        return float((1 - t) * low + t * high)

    @property
    def steepness(self) -> tuple[float, float]:
        """Mean and largest slope between neighbouring samples, as rise over run."""
        step = self.side / (len(self.heights) - 1)
        along_y, along_x = np.gradient(self.heights, step)
        slope = np.hypot(along_x, along_y)
        return float(slope.mean()), float(slope.max())


def bumps(seed: int, *, peak: float = PEAK, samples: int = SAMPLES) -> Terrain:
    """Waves of random direction, length and phase, added and scaled to `peak` [m]."""
    rng = np.random.default_rng(seed)
    x = np.linspace(-SIDE / 2, SIDE / 2, samples)
    heights = np.zeros((samples, samples))
    for _ in range(WAVES):
        angle, phase = rng.uniform(0.0, 2 * np.pi, 2)
        length = rng.uniform(SHORTEST, LONGEST)
        k = 2 * np.pi / length
        along = np.cos(angle) * x[None, :] + np.sin(angle) * x[:, None]
        heights += length * np.cos(k * along + phase)  # all waves are equally steep
    heights -= heights.min()
    return Terrain(heights * (peak / heights.max()))


def flat() -> Terrain:
    """No bumps."""
    return Terrain(np.zeros((2, 2)))
