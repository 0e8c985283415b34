"""Random compressions, and the exact one."""
