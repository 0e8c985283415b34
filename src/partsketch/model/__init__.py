"""From summaries to a model, without rows: methods, combination, certificate, inference, record, file."""
