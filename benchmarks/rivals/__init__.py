"""One file per contestant library; each imports its library only when it runs."""
