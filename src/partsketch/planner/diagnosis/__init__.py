"""How unlike the partitions are, which rows make them so, what each method would lose, and what to do about it."""
