"""Run trials on a Ray cluster.

`player` is the run's side, `worker` the other, and `messages` is all that passes between them.
"""
