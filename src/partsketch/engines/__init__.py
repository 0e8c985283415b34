"""Where the work is done."""
