"""A run that was compared with a baseline, both of them hostile in every text that anybody could write."""

from collections.abc import Sequence
from dataclasses import replace

import hostile_text
import reliability_cases

from ci_evals.domain.results.comparison import Comparison, TestName
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.simulated_user import UserAudit
from ci_evals.domain.transcript import Turns
from ci_evals.reports.story.comparison_runs import ComparisonRun, ComparisonRuns

_DO = "(window.pwned=1)"
_FAR = "http://127.0.0.1:9/"
MARKUP = (
    f"</script><script>{_DO}</script>",
    f"<!--<script>{_DO}--><script>{_DO}</script>--!>",
    f"\"><img src=x onerror={_DO}>' onmouseover='{_DO}' autofocus onfocus={_DO} x='",
    f"javascript:{_DO}",
    f"data:text/html,<script>{_DO}</script>",
    f"</style><style>*{{display:none !important;background:url({_FAR})}}</style>",
    f"red; background: url({_FAR}) }} body {{ display: none }} @import '{_FAR}'; x {{",
    f'<base href="{_FAR}"><meta http-equiv="refresh" content="0;url={_FAR}">',
    f"<link rel=stylesheet href={_FAR}><object data={_FAR}></object><embed src={_FAR}>",
    '<iframe srcdoc="<script>parent.pwned=1</script>"></iframe>',
    f"<svg onload={_DO}><style>@import '{_FAR}'</style><a xlink:href='javascript:{_DO}'><text>x</a></svg>",
    f"<template><script>{_DO}</script></template><noscript><p title='</noscript><img src=x onerror={_DO}>'>",
    "<form id=index><input name=textContent></form><a id=TESTS name=clean><img name=getElementById>",
    f"<math><mtext><table><mglyph><style><img src=x onerror={_DO}></style></mglyph></table></mtext></math>",
    f"</title></head></body></html><body onload={_DO} style='display:none'>",
    f"{{{{ {_DO} }}}} {{% raw %}} ${{{_DO}}} `${{{_DO}}}` #{{{_DO}}} <%= {_DO} %>",
    "&lt;b&gt; &amp;amp; &#60;img&#62; &copy; &notanentity; &#0; &#x110000; &quot;",
    "<!--conversations-->",
    "*/ // --> ]]> \\u003cscript\\u003e \\x3c \\",
    "W" * 100_000,
)
NAMES = (
    *("__proto__", "constructor", "TESTS", "undefined", "index", "test", "t0.1", "1", "vs1", ".", "..", "/"),
    *("#", "%2F", "%zz", "a/b#c?d%25e", "a/1/2/vs1", '"', "'", "\n", "\ud83d", "\u202e", "a\u200db"),
)
_KNOWN = reliability_cases.results_with_all_studies()
"""Results with everything that can be known of judge and simulated user."""
TEXTS = (*MARKUP, *hostile_text.CORPUS, *NAMES)


def poisoned_runs(
    head: Results, base: Results, texts: Sequence[str] = TEXTS
) -> tuple[Results, ComparisonRuns]:
    """`head` with its worst test once for each text, which is then all its text, and what stands beside it.

    `base` has the same tests. Of each, one trial of two turns is there. What is told of the run as a
    whole has all short texts in one.
    """
    assert head.comparison
    worst = head.comparison.regressed[0]
    near, far = (_poisoned(_narrowed(results, worst), texts) for results in (head, base))
    return near, ComparisonRuns(
        baseline=far, others=(ComparisonRun.of(far, " ".join(NAMES)), ComparisonRun.of(near, MARKUP[0]))
    )


def _narrowed(results: Results, name: TestName) -> Results:
    suite = next(suite for suite in results.suites if suite.name == name.suite)
    test = next(test for test in suite.tests if test.name == name.name)
    trial = test.trials[0]
    sampled = reliability_cases.sample_tests()[1].trials[0].findings
    findings = (*trial.findings, reliability_cases.GRADED_FINDING, *sampled)
    audit = UserAudit(violations=reliability_cases.VIOLATIONS)
    trial = replace(trial, turns=Turns(trial.turns[:2]), findings=findings, user_audit=audit)
    suites = (replace(suite, tests=(replace(test, trials=(trial,)),)),)
    known = {name: getattr(_KNOWN, name) for name in ("vote_agreement", "user_checks", "studies")}
    return replace(results, suites=suites, **known)


def _poisoned(results: Results, texts: Sequence[str]) -> Results:
    whole = hostile_text.fill_free_text(results, " ".join(text for text in texts if len(text) < 1_000))
    suites = tuple(
        replace(hostile_text.fill_free_text(results.suites[0], text), folder=f"suite-{number}")
        for number, text in enumerate(texts)
    )
    return replace(whole, suites=suites, comparison=_compared(whole.comparison, results, texts))


def _compared(whole: Comparison | None, results: Results, texts: Sequence[str]) -> Comparison | None:
    if whole is None or results.comparison is None:
        return None
    worst, *_ = results.comparison.regressed
    changes = tuple(hostile_text.fill_free_text(worst, text) for text in texts)
    names = tuple(TestName(suite=text, name=text) for text in texts)
    compared = replace(whole, regressed=changes, fixed=changes[:5], suspects=changes)
    return replace(compared, new=names[:5], removed=names, changed=names[-5:])
