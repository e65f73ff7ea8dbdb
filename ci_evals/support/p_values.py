"""How a p value is written, in what a run says of itself and in every report."""

from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal


def written(p: float) -> str:
    """`0.06`: two decimals, three below 0.01 and around 0.05, where it stays on its side; `below 0.001`."""
    if p < 0.001:
        return "below 0.001"
    if p > 0.99:
        return "above 0.99"
    near = 0.045 <= p <= 0.055
    step = Decimal("0.001") if p < 0.01 or near else Decimal("0.01")
    rounding = ROUND_HALF_EVEN if not near else ROUND_CEILING if p > 0.05 else ROUND_FLOOR
    return f"{Decimal(repr(float(p))).quantize(step, rounding).normalize():f}"


def named(p: float) -> str:
    """The same where it is not said what it is: `p = 0.06`, `p below 0.001`."""
    shown = written(p)
    return f"p {shown}" if shown.startswith(("below", "above")) else f"p = {shown}"
