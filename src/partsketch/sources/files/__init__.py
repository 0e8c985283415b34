"""Rows in files: Parquet, CSV, Feather, and which files there are."""
