"""Suites of attacks that another suite plays against its own agent: `extends: safety:data`."""
