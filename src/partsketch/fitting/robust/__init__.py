"""Standard errors that allow unequal noise, or noise that hangs together in clusters: one more pass over the rows."""
