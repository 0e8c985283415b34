"""Formulas: columns of the data become columns of a model, block by block, with what was found of all rows once."""
