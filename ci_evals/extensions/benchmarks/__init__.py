"""Readers of the results of public benchmarks, for `gate`."""
