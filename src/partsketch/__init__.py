"""Least squares on partitioned data, with the error known."""
