"""From a request and a source to a fit: options, data request, sketch size, batches, refinement."""
