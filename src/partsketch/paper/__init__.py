"""The study of the paper: its tables and figures made again, its claims checked, a page that shows both."""
