"""What rows become: partitions, tasks, one pass over rows, the merge tree, the summary and its file."""
