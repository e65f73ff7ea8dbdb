"""The command `init`: a starter suite and its workflow for a repository."""
