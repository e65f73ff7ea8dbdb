"""The reader of this extension."""

from ci_evals.extensions.every_eval_ever import reader

READERS = (reader.READER,)
