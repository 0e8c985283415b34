"""Tasks on a Dask cluster."""

from partsketch.engines.dask.engine import DaskEngine

__all__ = ["DaskEngine"]
