"""The explorer: a local page with sliders that shows what the formulas say; Python evaluates every one of them."""
