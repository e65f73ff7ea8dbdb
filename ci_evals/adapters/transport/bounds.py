"""How much is read of what others send."""

MAX_ANSWER_MB = 16
"""More than this of one answer is not read, counted after unpacking: 400 kB of gzip can hold 400 MB."""


class AnswerTooLargeError(Exception):
    """An answer was longer than it may be. No error of httpx2's: those are tried again."""

    def __init__(self, most_mb: int = MAX_ANSWER_MB) -> None:
        super().__init__(f"answered with more than {most_mb} MB")
