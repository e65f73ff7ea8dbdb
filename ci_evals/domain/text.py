"""What every text from outside must be before it can be written or sent."""


def whole(text: str) -> str:
    """`text` with U+FFFD for each half of a surrogate pair: JSON can carry one in, UTF-8 cannot carry it out."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
