"""What a file would show of single rows: looked at, and refused unless it is allowed."""
