"""What a person reads of two judges: how many verdicts changed, which, and how far they agree."""

import builders as build

from ci_evals.extensions.rejudge.changed_verdicts import judges, render
from ci_evals.scoring.agreement.judges import Twice


def rejudged_verdict(before: str, after: str, number: int = 1, test: str = "Refund", **fields) -> Twice:
    """A verdict that became another; the new reason names its number."""
    old = build.finding(before, kind="judged", criterion="It is polite")
    new = build.finding(after, kind="judged", criterion="It is polite", **{"reason": f"r{number}"} | fields)
    return Twice("Shop", test, number, old, new)


def test_rejudge_text_shows_counts_agreement_and_failures_first():
    pairs = [
        *[rejudged_verdict("passed", "passed")] * 6,
        rejudged_verdict("failed", "passed", 2),
        rejudged_verdict("failed", "passed", 3),
        rejudged_verdict("passed", "failed", 4),
        rejudged_verdict("failed", "failed"),
        rejudged_verdict("undecided", "passed", 5),
    ]
    assert render(pairs, "by A; before by B") == (
        "Judged again\n"
        "  by A; before by B\n"
        "  4 of 11 judged verdicts changed: 2 from failed to passed, 1 from passed to failed, "
        "1 from undecided to passed\n"
        "  agreement: 70.0 % of the 10 verdicts decided both times; Cohen's kappa 0.21 "
        "(0 is chance, 1 is full agreement)\n"
        "\n"
        "  test    criterion     trial  before     after   the new reason\n"
        "  ------  ------------  -----  ---------  ------  --------------\n"
        "  Refund  It is polite      4  passed     failed  r4\n"
        "  Refund  It is polite      2  failed     passed  r2\n"
        "  Refund  It is polite      3  failed     passed  r3\n"
        "  Refund  It is polite      5  undecided  passed  r5\n"
    )


def test_table_of_changes_is_left_out_if_no_verdict_changed_or_finished():
    text = render([rejudged_verdict("passed", "passed")] * 3, "by A")
    assert "none of 3 judged verdicts changed" in text
    assert "100.0 % of the 3 verdicts decided both times; all alike, so Cohen's kappa has no value" in text
    assert text.count("\n") == 4
    text = render([], "by A", not_judged=7)
    assert "7 verdicts could not be given again: the run ended before" in text
    assert "agreement" not in text


def test_twenty_changes_are_listed_unless_verbose():
    pairs = [rejudged_verdict("passed", "failed", number) for number in range(1, 24)]
    text = render(pairs, "by A")
    assert [f"r{number}" in text.split() for number in (1, 20, 21)] == [True, True, False]
    assert text.endswith("  and 3 more (set verbose to see all)\n")
    assert "r23" in render(pairs, "by A", verbose=True).split()


def test_agreement_is_rounded_down():
    alike = [rejudged_verdict("passed", "passed")] * 1999
    assert "99.9 % of" in render([*alike, rejudged_verdict("passed", "failed")], "by A")
    pairs = [rejudged_verdict("passed", "passed")] * 3 + [rejudged_verdict("failed", "failed")] * 2
    assert "kappa 0.66 " in render([*pairs, rejudged_verdict("passed", "failed")], "by A")


def test_judges_before_and_after_are_named():
    assert judges(["b", "a", "b"], ["c", "c", "c"]) == "by c; before by a, b"
    assert judges(["a"], ["a"]) == "by the same judge: a"
    assert judges([None], ["a"]) == "by a; before by nobody"


def test_log_commands_and_control_characters_in_verdicts_are_escaped():
    attack = "no\n::error::x\x1b[31m ##[add-path]y"
    bad = rejudged_verdict("passed", "failed", reason=attack, test="::warning::t")
    text = render([bad], "::notice::a")
    for hostile in ("::error::", "::warning::", "::notice::", "##[", "\x1b"):
        assert hostile not in text
    assert text.count("\n") == 8
