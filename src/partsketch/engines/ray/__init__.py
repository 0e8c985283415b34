"""Tasks on a Ray cluster."""

from partsketch.engines.ray.engine import RayEngine

__all__ = ["RayEngine"]
