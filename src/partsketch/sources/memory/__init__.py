"""Rows in memory: arrays, tables, sparse matrices."""
