"""The steps and probes of tests' worlds: requests, statements, programs, functions, files."""
