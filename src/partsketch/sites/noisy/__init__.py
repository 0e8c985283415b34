"""Files with a promise (ε, δ): public bounds, sums of products in whole numbers, noise, the ledger, and their model."""
