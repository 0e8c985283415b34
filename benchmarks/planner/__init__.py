"""Are plans right? Candidates of many settings are planned, fitted and timed: `python -m benchmarks planner`."""
