"""`report.html`: the page that people open, one file that needs nothing but a browser."""
