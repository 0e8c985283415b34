"""Files that travel: sketch at a site, check that files agree, combine them."""
