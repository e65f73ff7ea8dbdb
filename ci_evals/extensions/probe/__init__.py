"""Judged criteria that measure nothing: they pass on conversations of other tests too."""
