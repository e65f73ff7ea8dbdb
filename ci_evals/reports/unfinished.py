"""The reports of a run that is under way, so that a kill leaves none of an earlier run."""

import json
from collections.abc import Iterable
from xml.sax.saxutils import quoteattr

from ci_evals.domain.results.run import Results
from ci_evals.reports import ctrf_form, results_json, sanitize
from ci_evals.reports.ctrf_form import Head, Status
from ci_evals.reports.names import BADGE, BADGE_DATA, CTRF, FINDINGS, JUNIT, PAGE, RESULTS, SUMMARY

OUTDATED = (PAGE, BADGE, BADGE_DATA, FINDINGS)
"""Reports of an earlier run that are taken away: there is nothing yet to put in their place."""


def files(results: Results) -> dict[str, Iterable[str]]:
    """Return the name and the text of each report. Made by hand: a run must begin at once."""
    why = sanitize.one_line(results.gate.reasons[0] if results.gate.reasons else "", 300)
    junit = (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<testsuites name="ci-evals" tests="1" failures="0" errors="1" skipped="0" time="0">\n'
        '  <testsuite name="ci-evals" tests="1" failures="0" errors="1" skipped="0" time="0">\n'
        '    <testcase name="run unfinished" classname="ci-evals" time="0">\n'
        f'      <error type="unfinished" message={quoteattr(sanitize.xml(why))} />\n'
        "    </testcase>\n  </testsuite>\n</testsuites>\n"
    )
    head = Head(results.run, results.tool, results.gate, results.score, len(results.suites), None)
    ctrf = ctrf_form.document(head, [Status.FAILED])
    ctrf["results"]["tests"].append(ctrf_form.run_failure("run unfinished", why))
    return {
        RESULTS: results_json.render(results),
        SUMMARY: [f"## No verdict: {sanitize.inline(why, 300)}\n"],
        JUNIT: [junit],
        CTRF: [json.dumps(ctrf, indent=2, ensure_ascii=False), "\n"],
    }
