"""Exact fits in which every value of a column has an intercept of its own, without a column for each."""
