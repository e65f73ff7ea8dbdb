"""The command `rejudge`: the conversations of a saved run, judged again."""
