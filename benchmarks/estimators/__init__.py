"""What each way to combine the same sketches loses, beside the least that any can lose."""
