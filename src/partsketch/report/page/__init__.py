"""The report of one or several models: one HTML file that needs nothing else."""

from partsketch.report.page.entry import Entry, entries_of
from partsketch.report.page.writing import write_entries, write_report

__all__ = ["Entry", "entries_of", "write_entries", "write_report"]
