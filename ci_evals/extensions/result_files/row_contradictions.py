"""Files of other tools' results that contradict themselves or each other: they give no verdict."""

from collections.abc import Iterable, Iterator, Sequence

from ci_evals.extension_support.result_files.result_rows import ResultSet, differ, mean_of
from ci_evals.extensions.result_files.row_results import FileResults

_MOST = 20
"""The most contradictions that a verdict names."""

_Sets = list[tuple[FileResults, ResultSet]]


def contradictions(files: Sequence[FileResults]) -> tuple[str, ...]:
    """Return what contradicts what, each with its file and place."""
    found = list(dict.fromkeys((*_within(files), *_twice(files), *_totals(files))))
    more = len(found) - _MOST
    return (*found[:_MOST], f"{more:,} more contradictions") if more > 0 else tuple(found)


def _within(files: Iterable[FileResults]) -> Iterator[str]:
    for file in files:
        for results in file.sets:
            yield from (f"{file.file}: {contradiction}" for contradiction in results.contradictions)


def _twice(files: Iterable[FileResults]) -> Iterator[str]:
    """Yield the files that give rows once more."""
    first: dict[object, str] = {}
    for file in files:
        if not file.rows:
            continue
        earlier = first.setdefault(file.content, file.file)
        if earlier != file.file and not _is_trial(file, earlier):
            yield f"{file.file}: has the same content as {earlier}. Name each run once."
            continue
        for results in file.sets:
            for run in results.run_ids if results.rows else ():
                earlier = first.setdefault((file.format, results.arm, run), file.file)
                if earlier != file.file:
                    yield f"{file.file}: has the same run as {earlier} ({run[:100]}). Name each run once."


def _is_trial(file: FileResults, earlier: str) -> bool:
    """Return whether a file is a trial by its place: tools with a file for each result name all alike."""
    return file.rows == 1 and file.file.rpartition("/")[2] == earlier.rpartition("/")[2]


def _totals(files: Iterable[FileResults]) -> Iterator[str]:
    """Yield the totals of files without rows that the rows of the others contradict."""
    suites: dict[tuple[str, str | None], _Sets] = {}
    for file in files:
        for results in file.sets:
            suites.setdefault((results.suite, results.arm), []).append((file, results))
    for (suite, _), sets in suites.items():
        stating = [(file, one) for file, one in sets if one.stated]
        if stating:
            yield from _of_suite(suite, stating, [one for _, one in sets if one.rows])


def _of_suite(suite: str, stating: _Sets, with_rows: Sequence[ResultSet]) -> Iterator[str]:
    totals = [(file, one.stated) for file, one in stating if one.stated]
    files = ", ".join(file.file for file, _ in totals)
    places = ", ".join(f"{file.file}: {stated.place}" for file, stated in totals)
    samples = sum(stated.samples for _, stated in totals)
    if not with_rows:
        if samples:
            yield f"{places} is {samples:,}, and no file has the rows of {suite!r}. Name their files too."
        return
    found, scored = _tests(with_rows), _tests(with_rows, scored=True)
    if not scored <= samples <= found:
        yield f"{places} is {samples:,}, and the files have {found:,} tests of {suite!r}."
    records = [stated.records for _, stated in totals if stated.records is not None]
    read = sum(one.records for one in with_rows)
    if len(records) == len(totals) and sum(records) != read:
        yield f"{files}: {sum(records):,} rows are stated, and the files have {read:,} of {suite!r}."
    if all(stated.passed is not None for _, stated in totals):
        passed = sum(stated.passed or 0 for _, stated in totals)
        seen = sum(row.passed is True for one in with_rows for row in one.rows)
        if passed != seen:
            yield f"{files}: {passed:,} passed, and in the files {seen:,} of {suite!r} did."
    means = [stated.mean for _, stated in totals if stated.mean is not None]
    mean = mean_of(with_rows[0].rows)
    if len(means) == len(with_rows) == 1 and mean is not None and differ(mean, means[0]):
        yield f"{files}: the stated score is {means[0]:.3f}, and the rows of {suite!r} have {mean:.3f}."


def _tests(sets: Iterable[ResultSet], *, scored: bool = False) -> int:
    """Return how many tests the sets have, each counted once in each of them."""
    return sum(len({row.test for row in one.rows if row.passed is not None or not scored}) for one in sets)
