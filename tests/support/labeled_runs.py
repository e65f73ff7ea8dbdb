"""A saved run with judged verdicts, whose truth is known, and sheets that people fill in."""

import csv
import io
import re
from pathlib import Path

import builders as build
from seeded_judges import seeded_chance

from ci_evals.domain.results.run import Results
from ci_evals.reports import results_json

CRITERIA = {"It confirms the refund": "service", "It promises no date": "safety", "It is polite": None}
JUDGE = "a-judge-of-note"
REASON = "since-the-judge-said-so"
FORMULAS = (
    "=1+1", "+1", "-1+cmd|' /C calc'!A0", "@SUM(1)", "  =1", '"=1', "x;=1", "x\t=1", "x\n=1", 'x;"=1', "＝1",
    "\t=1", "'=1", ";;=1",
)  # fmt: skip
"""What a spreadsheet may take for one."""


def is_good(test: int, trial: int, criterion: str) -> bool:
    return seeded_chance("truth", test, trial, criterion) < 0.8


def judged_run(
    tests: int = 20, trials: int = 3, sensitivity: float = 0.95, specificity: float = 0.9, **fields
) -> Results:
    """Every conversation is another one; the judge errs as it is said."""

    def finding(*of):
        good = is_good(*of)
        right = seeded_chance("judge", *of) < (sensitivity if good else specificity)
        return build.finding(
            "passed" if good is right else "failed", kind="judged", criterion=of[2], category=CRITERIA[of[2]],
            reason=REASON,
        )  # fmt: skip

    played = [
        build.test_result(
            f"Test {test}",
            trials=tuple(
                build.trial_result(
                    trial,
                    turns=(build.turn(1, user=f"Hello {test}", agent=f"Reply {trial} of {test}"),),
                    findings=tuple(finding(test, trial, criterion) for criterion in CRITERIA),
                )
                for trial in range(1, trials + 1)
            ),
        )
        for test in range(tests)
    ]
    fields = {"judge_model": JUDGE, "min_score": 77.25} | fields
    return build.results(build.suite_result("Refunds", *played, **fields))


def write_results(results: Results, folder: Path) -> Path:
    file = folder / "_results.json"
    file.write_text("".join(results_json.render(results)))
    return file


def read_sheet(sheet: str) -> list[dict[str, str]]:
    """A sheet as a spreadsheet has it."""
    return list(csv.DictReader(io.StringIO(sheet.removeprefix("\ufeff"), newline="")))


def answers_of_person(sheet: str, who: str, mistakes: float = 0.0) -> dict[str, str]:
    """What a person says of the items."""
    result = {}
    for row in read_sheet(sheet):
        trial, test = map(int, re.search(r"> Reply (\d+) of (\d+)", row["conversation"]).groups())
        good = is_good(test, trial, row["criterion"])
        result[row["item"]] = "pass" if good != (seeded_chance(who, row["item"]) < mistakes) else "fail"
    return result


def filled_sheet(fields: dict[str, str], **columns: str) -> str:
    """A sheet with labels, of the columns that matter."""
    lines = [",".join(["item", "label", *columns])]
    return "\n".join(
        [*lines, *(",".join([item, label, *columns.values()]) for item, label in fields.items())]
    )
