"""Rows that lie on a cluster: names and sizes of chunks here, values there."""
