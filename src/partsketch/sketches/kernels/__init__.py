"""The compiled work of sketches."""
