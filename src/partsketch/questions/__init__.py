"""Many models from the same exact summaries: fits with cluster errors, paths, tests, instruments, comparisons."""
