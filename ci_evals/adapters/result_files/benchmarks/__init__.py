"""Readers of the results of benchmarks: one module for each."""
