"""The charts of the page: plain numbers in, SVG out, drawn when the page is made."""
