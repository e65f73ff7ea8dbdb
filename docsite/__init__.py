"""Make the parts of the documentation that come from the code: `python -m docsite`."""
