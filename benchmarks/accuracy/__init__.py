"""How many digits are right: NIST's data sets, hostile tables, and how often intervals cover."""
