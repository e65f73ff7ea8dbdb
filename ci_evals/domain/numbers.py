"""The format of every number in a report.

Scores, shares and changes are cut and limits raised, so that no shown number looks better than the gate found
it, and no drop smaller than it is. Beside both of its scores a change is the difference of what is shown of
them. Headings, lines of numbers and the comment's table have whole `points`, everything else a decimal.
A p around 0.05 is shown on its side of it: 0.0504 → `0.051`.
Limits and changes are taken to the billionth: a drop of 5 may stand in binary as a little more.
"""

from collections.abc import Callable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from functools import cache

from ci_evals.domain.base import Interval
from ci_evals.domain.results.judge import Estimate
from ci_evals.domain.results.usage import RoleUsage

NONE = "n/a"
_MINUS = "−"
_EVERY_FLOAT = Context(prec=400)
"""Digits enough for any: a results file that somebody else wrote may hold 1e300."""

_HALF = 0.5
"""A score is a headline where more than this share of its weight was decided."""
_TENTH = Decimal("0.1")
_LEAST_P, _MOST_P = 0.001, 0.99
"""A p value beyond them is not shown exactly."""


def score(points: float | None, floor: float | None = None) -> str:
    """A score in points, one decimal or those of its floor, never rounded up: 79.96 → `79.9`."""
    return NONE if points is None else _rounded(points, _step(floor, 1), ROUND_FLOOR)


def points(number: float | None) -> str:
    """A score in a heading, a line of numbers or the comment's table: whole points, cut: 93.75 → `93`."""
    return NONE if number is None else _rounded(number, Decimal(1), ROUND_FLOOR)


def difference(base: float, head: float) -> float:
    """The change between two scores that stand beside it: what is shown of them, subtracted."""
    return _near(float(score(head)) - float(score(base)))


def changed(base: float | None, head: float | None) -> str:
    """The `difference` of two scores in points, one decimal: `−1.9`."""
    return NONE if base is None or head is None else signed(difference(base, head))


def changed_for_programs(base: float | None, head: float | None) -> str:
    """The same with the minus that programs read: `-1.9`."""
    return NONE if base is None or head is None else signed_for_programs(difference(base, head))


def points_changed(base: float | None, head: float | None) -> str:
    """The change between two scores that are shown in whole `points`: `−2`; no change is `±0`."""
    if base is None or head is None:
        return NONE
    change = points_between(base, head)
    if change > 0:
        return f"+{change}"
    if change < 0:
        return f"{_MINUS}{-change}"
    return "±0"


def points_between(base: float, head: float) -> int:
    """The difference of two scores as `points` shows them."""
    return int(points(head)) - int(points(base))


def at_least(number: float) -> str:
    """The whole number of points that is not below it."""
    return _rounded(_near(number), Decimal(1), ROUND_CEILING)


def interval(bounds: Interval | None) -> str:
    """A 95 % interval in points."""
    return NONE if bounds is None else f"{score(bounds.low)} to {score(bounds.high)}"


def headline(points: float | None, decided: float | None) -> str | None:
    """A score as a headline; None where at most half of its weight was decided, so that it says little."""
    return None if decided is not None and decided <= _HALF else score(points)


def percent(share: float | None) -> str:
    """A share between 0 and 1, whole, never rounded up: 2/3 → `66 %`."""
    return NONE if share is None else _rounded(share, Decimal("0.01"), ROUND_FLOOR, 100) + " %"


def fault(share: float | None) -> str:
    """A share that should be small, whole, never rounded down: 0.031 → `4 %`."""
    return NONE if share is None else _rounded(_near(share), Decimal("0.01"), ROUND_CEILING, 100) + " %"


def excess(part: float | None) -> str:
    """The part by which something exceeds a whole, rounded, with its sign: 0.5 → `+50 %`."""
    if part is None:
        return NONE
    text = _rounded(_near(part), Decimal("0.01"), ROUND_HALF_EVEN, 100)
    return f"+{text} %" if int(text) > 0 else f"{text} %"


def coefficient(number: float | None) -> str:
    """A kappa or an alpha, two decimals, never rounded up: 0.789 → `0.78`."""
    return NONE if number is None else _rounded(_near(number), Decimal("0.01"), ROUND_FLOOR)


def grade(number: float | None, floor: float | None = None) -> str:
    """A rubric's grade, 0 to 1, two decimals or those of its floor, never rounded up: 2/3 → `0.66`."""
    return NONE if number is None else _rounded(_near(number), _step(floor, 2), ROUND_FLOOR)


def average(number: float | None) -> str:
    """The mean number of something, one decimal, rounded: 2.777 → `2.8`."""
    if number is None:
        return NONE
    return "below 0.1" if 0 < number < 0.1 else _rounded(number, _TENTH, ROUND_HALF_EVEN)


def estimate(estimated: Estimate | None, show: Callable[[float], str]) -> str:
    """`92 % (86 % to 97 %)`: a number and its interval, unless that reads the same."""
    if estimated is None:
        return NONE
    shown = show(estimated.value)
    if estimated.low is None or estimated.high is None:
        return shown
    bounds = extent(estimated.low, estimated.high, show)
    return shown if bounds == shown else f"{shown} ({bounds})"


def estimated_share(estimated: Estimate | None) -> str:
    """A share between 0 and 1, with its interval."""
    return estimate(estimated, percent)


def estimated_coefficient(estimated: Estimate | None) -> str:
    """A kappa or an alpha, with its interval."""
    return estimate(estimated, coefficient)


def estimated_fault(estimated: Estimate | None) -> str:
    """A share of what should not be, with its interval."""
    return estimate(estimated, fault)


def plain(number: float | None) -> str:
    """A number that a person wrote, such as a weight or a limit: 80.0 → `80`."""
    if number is None:
        return NONE
    text = f"{Decimal(repr(number)):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def least(number: float | None, limit: float | None = None) -> str:
    """A number with an upper limit, one decimal or those of the limit, never rounded down: 5.04 → `5.1`."""
    if number is None:
        return NONE
    return plain(_near(float(_rounded(_near(number), _step(limit, 1), ROUND_CEILING))))


def signed(points: float | None) -> str:
    """A change of a score in points, one decimal, never rounded up: -3.62 → `−3.7`."""
    return signed_for_programs(points).replace("-", _MINUS)


def signed_for_programs(points: float | None) -> str:
    """The same with the minus that programs read: -3.62 → `-3.7`."""
    if points is None:
        return NONE
    text = _rounded(_near(points), _TENTH, ROUND_FLOOR)
    return f"+{text}" if _near(points) > 0 else text


def change_interval(bounds: Interval | None, base: float | None = None, head: float | None = None) -> str:
    """The 95 % interval of a change: `−7.9 to +0.5`. Beside both scores it contains what `changed` shows."""
    if bounds is None:
        return NONE
    low, high = bounds.low, bounds.high
    if base is not None and head is not None:
        shown = difference(base, head)
        low, high = min(low, shown), max(high, shown)
    return f"{signed(low)} to {signed(high)}"


def spread(points: float | None) -> str:
    """A standard deviation in points, one decimal, rounded: 57.735 → `57.7`."""
    return NONE if points is None else _rounded(points, _TENTH, ROUND_HALF_EVEN)


def gain(square_points: float | None) -> str:
    """The variance that a dollar, or a call, removes, four decimals below ten: 0.55057 → `0.5506`."""
    if not square_points:
        return NONE if square_points is None else "0.0"
    return f"{square_points:,.1f}" if abs(square_points) >= 10 else f"{square_points:.4f}"


def chance(p: float | None) -> str:
    """A p value: `0.06`, with three decimals below 0.01 and around 0.05, where it stays on its side."""
    if p is None:
        return NONE
    if p < _LEAST_P:
        return f"below {_LEAST_P}"
    if p > _MOST_P:
        return f"above {_MOST_P}"
    near = 0.045 <= p <= 0.055
    step = Decimal("0.001") if p < 0.01 or near else Decimal("0.01")
    rounding = ROUND_HALF_EVEN if not near else ROUND_CEILING if p > 0.05 else ROUND_FLOOR
    return f"{Decimal(repr(float(p))).quantize(step, rounding).normalize():f}"


def p_value(p: float | None) -> str:
    """A p value with its name: `p = 0.06`, `p below 0.001`."""
    exact = p is None or _LEAST_P <= p <= _MOST_P
    return f"p = {chance(p)}" if exact else f"p {chance(p)}"


def decimal(share: float | None) -> str:
    """A p or a share as a plain number, four decimals, never rounded down: 0.00031 → `0.0004`."""
    return NONE if share is None else plain(float(_rounded(_near(share), Decimal("0.0001"), ROUND_CEILING)))


def odds(share: float | None) -> str:
    """The probability of an event, from random draws, whole, never rounded down: 0.112 → `12 %`."""
    if share is None:
        return NONE
    if share < 0.01:
        return "less than 1 %"
    if share > 0.99:
        return "more than 99 %"
    return _rounded(_near(share), Decimal("0.01"), ROUND_CEILING, 100) + " %"


def duration(seconds: float | None) -> str:
    """A duration in its two largest units, below ten seconds one decimal: 123 s → `2 m 3 s`."""
    if seconds is None:
        return NONE
    if seconds < 9.95:
        return _rounded(seconds, _TENTH, ROUND_HALF_EVEN) + " s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} m {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} m"


def about(seconds: float) -> str:
    """An estimated duration in its largest unit, below an hour minutes: 123 s → `2 m`."""
    if seconds < 59.5:
        return duration(seconds)
    minutes = round(seconds / 60)
    return f"{minutes} m" if minutes < 60 else f"{minutes // 60} h {minutes % 60} m"


def age(seconds: float) -> str:
    """The age of something in its largest unit, cut: 50 h → `2 days`."""
    for size, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= size:
            return count(int(seconds // size), unit)
    return "less than a minute"


def latency(seconds: float | None, limit: float | None = None) -> str:
    """A latency, two decimals or three below a tenth, above its `limit` even when rounded: `1.23 s`."""
    if seconds is None:
        return NONE
    if 0 < seconds < 0.0005 and limit is None:
        return "below 0.001 s"
    step = _step(limit, 3 if seconds < 0.1 else 2)
    shown = _rounded(seconds, step, ROUND_HALF_EVEN)
    if limit is not None and float(shown) <= limit < seconds:
        shown = _rounded(seconds, step, ROUND_CEILING)
    return f"{shown} s"


def money(dollars: float | None) -> str:
    """US dollars, four decimals below ten cents: 0.0312 → `$0.0312`."""
    if dollars is None:
        return NONE
    if 0 < dollars < 0.0001:
        return "below $0.0001"
    step = Decimal("0.0001") if 0 < dollars < 0.1 else Decimal("0.01")
    return f"${_rounded(dollars, step, ROUND_HALF_EVEN)}"


def uncounted(role: RoleUsage) -> str | None:
    """The reason why the cost of a role is unknown though its model has a price; None if there is none."""
    if role.cost_usd is not None or not role.uncounted:
        return None
    return f"{role.uncounted} of {count(role.calls, 'answer')} without a usable count of tokens"


def budget(dollars: float | None, limit: float | None = None) -> str:
    """US dollars that the gate limits, with the decimals of the limit, never cut: 0.5 → `$0.50`."""
    if dollars is None:
        return NONE
    whole, _, cents = _rounded(_near(dollars), _step(limit, 4), ROUND_CEILING).partition(".")
    return f"${whole}.{cents[:2]}{cents[2:].rstrip('0')}"


def tokens(number: float) -> str:
    """An amount of tokens, below ten one decimal: 184,321 → `184 k`."""
    whole = round(number)
    if whole < 1000:
        return str(whole)
    size, unit = (whole / 1e3, "k") if whole < 999_500 else (whole / 1e6, "M")
    return f"{size:.1f} {unit}" if size < 9.95 else f"{round(size):,} {unit}"


def extent(low: float, high: float, show: Callable[[float], str]) -> str:
    """From `low` to `high`, each as `show` writes it, once where they read the same."""
    least, most = show(low), show(high)
    return least if least == most else f"{least} to {most}"


def count(number: int, noun: str, plural: str | None = None) -> str:
    """A number of things: `1 test`, `2 tests`, `3 criteria`."""
    if number != 1:
        noun = plural or f"{noun}s"
    return f"{number:,} {noun}"


def up_to(fewest: int, most: int, noun: str = "") -> str:
    """Return a range of whole numbers: `1 to 7 turns`, or `2 turns` if both are the same."""
    number = count(most, noun) if noun else f"{most:,}"
    return number if fewest == most else f"{fewest:,} to {number}"


def listed(names: Sequence[str], most: int, noun: str | None = None) -> str:
    """The first names, and the number of the others: `A; B; and 3 more tests`."""
    others = len(names) - most
    if others <= 0:
        return "; ".join(names)
    more = count(others, f"more {noun}") if noun else f"{others:,} more"
    return "; ".join([*names[:most], f"and {more}"])


@cache
def _step(limit: float | None, fewest: int) -> Decimal:
    """The last place to show: that of the limit where it has more decimals than `fewest`."""
    decimals = 0 if limit is None else len(plain(limit).partition(".")[2])
    return Decimal(1).scaleb(-max(fewest, decimals))


def _near(number: float) -> float:
    """The number that was meant, where binary arithmetic missed it by a little; never a negative zero."""
    return round(number, 9) + 0.0


def _rounded(number: float, step: Decimal, rounding: str, times: int = 1) -> str:
    # From the shortest text that stands for the number: 29.3 in binary is a little less than 29.3.
    rounded = Decimal(repr(float(number))).quantize(step, rounding, _EVERY_FLOAT)
    return str(rounded if times == 1 else int(rounded * times))
