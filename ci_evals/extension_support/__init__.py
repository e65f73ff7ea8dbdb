"""The tools of extensions that ask a judge about a saved run, and keep what they learn with it."""
