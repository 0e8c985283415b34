"""What the driver of a fit does when workers cost nothing: results come ready, and are merged, kept and counted."""
