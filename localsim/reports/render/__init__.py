"""The renderers of a report: HTML and Markdown. The terminal has its own in `cli/report.py`."""
