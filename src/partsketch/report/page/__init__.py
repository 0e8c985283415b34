"""The report of one or several models: one HTML file that needs nothing else."""

from partsketch.report.page.entry import Entry, entries_of
from partsketch.report.page.writer import environment, report_fit, write_report

__all__ = ["Entry", "entries_of", "environment", "report_fit", "write_report"]
