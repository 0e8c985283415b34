"""Tasks on a Spark cluster."""

from partsketch.engines.spark.engine import SparkEngine

__all__ = ["SparkEngine"]
