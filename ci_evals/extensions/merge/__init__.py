"""The command `merge`: one run of the results of several jobs."""
