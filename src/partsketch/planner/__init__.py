"""Which method, sketch, size and number of partitions: what each loses, sends and costs, and which to take."""
