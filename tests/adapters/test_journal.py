"""The journal of a run: what is in it survives a kill, a full disk and a careless second start."""

import asyncio
import json
import resource
import shutil
from contextlib import contextmanager
from dataclasses import replace

import builders as build
import pytest
from each_row import each_row

from ci_evals._version import __version__
from ci_evals.adapters.journal.journal import Journal
from ci_evals.adapters.journal.records import JOURNAL as NAME
from ci_evals.adapters.journal.records import JournalHeader, JournalMark, RunIdentity
from ci_evals.domain.errors import UsageError
from ci_evals.domain.plan import Trial
from ci_evals.domain.results.run import Digests, Tool

DIGESTS = Digests(suites="s", agents="a", models="m", judge_prompt="j", user_prompt="u", loops="l")


def header(context=None, **digests) -> JournalHeader:
    fields = {"started_at": build.STARTED_AT, "digests": replace(DIGESTS, **digests)}
    made = JournalHeader(tool=Tool(version=__version__), run="run-1", **fields)
    return made.model_copy(update={"context": context}) if context else made


async def open_journal(folder, *results, context=None, **options) -> Journal:
    """A journal that is open, with these trials of one test."""
    journal = Journal(folder, **options)
    journal.open(header(context))
    for one in results:
        await journal.keep(at(one.index), one, one.index)
    return journal


def finished_in(folder, **options) -> list[Trial]:
    """The trials that a resumed run finds finished."""
    return list(Journal(folder, resume=True, **options).past.done)


def result(index: int = 1, **fields):
    return build.trial_result(index, **fields)


def at(index: int, test: int = 0) -> Trial:
    return Trial(suite=0, test=test, index=index)


async def write_journal(folder, *results, mark=None, **options) -> None:
    """Leave a journal with these trials of one test, as a killed run does."""
    journal = await open_journal(folder, *results, **options)
    if mark:
        journal.mark(JournalMark(mark=mark))
    journal.close()


async def resume_with(folder, index, elapsed=1) -> tuple[list[Trial], list[str]]:
    """Resume a run, finish one more trial, and return what was finished before and the messages."""
    messages = []
    journal = Journal(folder, resume=True, say=messages.append)
    done = list(journal.past.done) if journal.past else []
    journal.open(header())
    await journal.keep(at(index), result(index), elapsed)
    journal.close()
    return done, messages


async def test_journaled_trials_are_restored_unchanged(tmp_path):
    trials = [result(1, turns=(build.turn(1, trace={"a": [1, None, 0.1]}),)), result(2)]
    trials.append(result(3, turns=(build.turn(1, agent="half \ud83d of one"),)))
    await write_journal(tmp_path, *trials)
    past = Journal(tmp_path, resume=True).past
    done = {at(one.index): one for one in trials}
    assert (past.header, past.done, past.elapsed) == (header(), done, 3)


@pytest.mark.parametrize("cut", [1, 2, 40, 300])
async def test_trial_of_truncated_last_journal_line_is_rerun(tmp_path, cut):
    await write_journal(tmp_path, result(1), result(2))
    path = tmp_path / NAME
    path.write_bytes(path.read_bytes()[:-cut])
    reason = "is incomplete because the program was killed while writing: that trial is rerun"
    assert await resume_with(tmp_path, 2, 3) == ([at(1)], [f"the last line of {path} {reason}"])
    assert finished_in(tmp_path) == [at(1), at(2)]
    # Some file systems leave those after a crash of the machine.
    await write_journal(tmp_path, result(1))
    with path.open("ab") as file:
        file.write(bytes(200) + b"\n")
    assert finished_in(tmp_path) == [at(1)]


async def test_missing_journal_or_journal_with_a_truncated_header_is_started_over(tmp_path):
    """A kill may come before there is any; the user is told, since it may be a slip in the folder's name."""
    folder = tmp_path / "new"
    warning = f"warning: `resume=`: there is nothing to resume in {folder}, so the run starts over"
    assert await resume_with(folder, 1) == ([], [warning])
    assert finished_in(folder) == [at(1)]
    for content in (b"", b'{"journalVersion":2,"to'):
        (tmp_path / NAME).write_bytes(content)
        assert Journal(tmp_path, resume=True).past is None
        assert (await resume_with(tmp_path, 1))[0] == []
        assert finished_in(tmp_path) == [at(1)]


DAMAGES = {
    "no JSON": lambda lines: [*lines[:2], b"{\n", *lines[2:]],
    "nested": lambda lines: [*lines[:2], b"[" * 200_000 + b"\n", *lines[2:]],
    "no text": lambda lines: [*lines[:2], b"\xff\n", *lines[2:]],
    "copied": lambda lines: [*lines[:2], lines[1], *lines[2:]],
    "swapped": lambda lines: [*lines[:2], lines[3], lines[2], *lines[4:]],
    "left out": lambda lines: [*lines[:2], *lines[3:]],
    "changed": lambda lines: [*lines[:2], lines[2].replace(b'"elapsed":2', b'"elapsed":7'), *lines[3:]],
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
async def test_altered_journal_line_and_all_later_lines_are_dropped(tmp_path, damage):
    """Each line vouches for those before it. The user is told, and the next trials take the place."""
    await write_journal(tmp_path, *(result(index) for index in range(1, 5)))
    path = tmp_path / NAME
    path.write_bytes(b"".join(damage(path.read_bytes().splitlines(keepends=True))))
    done, (warning,) = await resume_with(tmp_path, 2, 3)
    assert done == [at(1)]
    assert f"line 3 of {path} is not as it was written: that line and all later ones are dropped" in warning
    assert finished_in(tmp_path) == [at(1), at(2)]


async def test_journal_with_altered_header_or_another_secret_is_rejected_as_altered(tmp_path):
    """It says what all trials are of. Who does not know the secret can compute no checksum."""
    path = tmp_path / NAME
    await write_journal(tmp_path, result(1), secret="a-key-of-ours")
    assert finished_in(tmp_path, secret="a-key-of-ours") == [at(1)]
    for secret in (None, "another-key"):
        with pytest.raises(UsageError, match="is not as it was written"):
            Journal(tmp_path, resume=True, secret=secret)
    path.unlink()
    await write_journal(tmp_path, result(1))
    path.write_bytes(path.read_bytes().replace(b'"suites":"s"', b'"suites":"t"', 1))
    with pytest.raises(UsageError, match="line 1 of the journal is not as it was written: the file was"):
        Journal(tmp_path, resume=True)


THERE = RunIdentity(ci=True, run_id="7", attempt=2, commit="c" * 40, checkout="d" * 40)


@each_row(("now", "why"), [
    ({}, None),
    ({"attempt": 5}, None),
    ({"attempt": 1}, "it is of attempt 2, and this is attempt 1"),
    ({"run_id": "8"}, "it is of run 7, and this is run 8"),
    ({"run_id": None}, "it is of run 7, and this is no GitHub run"),
    ({"commit": "e" * 40}, "it is of commit cccccccccccc, and this is commit eeeeeeeeeeee"),
    ({"checkout": "e" * 40}, "it is of commit dddddddddddd, and this is commit eeeeeeeeeeee"),
    ({"run_id": None, "commit": None, "checkout": None}, "neither the CI run nor the commit is known"),
    ({"ci": False, "run_id": None, "commit": None}, None),
])  # fmt: skip
async def test_journal_of_another_ci_run_or_commit_is_rejected_with_both_named(tmp_path, now, why):
    await write_journal(tmp_path / str(why), result(1), context=THERE)
    again = Journal(tmp_path / str(why), resume=True)
    here = header(THERE.model_copy(update=now))
    if why is None:
        again.open(here)
        again.close()
        return
    with pytest.raises(UsageError) as refused:
        again.open(here)
    assert why in str(refused.value)


async def test_journal_of_another_commit_outside_ci_is_resumed_with_a_warning(tmp_path):
    """Whoever works on an agent commits now and then, and answers for the run."""
    await write_journal(tmp_path, context=RunIdentity(checkout="d" * 40))
    messages = []
    again = Journal(tmp_path, resume=True, say=messages.append)
    again.open(header(RunIdentity(checkout="e" * 40)))
    again.close()
    commits = "played at commit dddddddddddd, and this is commit eeeeeeeeeeee"
    assert messages == [f"warning: the resumed trials were {commits}"]


@pytest.mark.parametrize(("differing", "text"), [
    ({"suites": "x", "loops": "x"}, "in the suites, or which of their tests are played"),
    ({"agents": "x"}, "in the agent."),
    ({"models": "x", "loops": "x"}, "in the provider or a model; the number of trials (`loops=`)."),
    ({"judge_prompt": "x", "scoring": "2"}, "in the version of ci-evals."),
    ({"user_prompt": "x"}, "in the audit of the user (`audit_user=`"),
])  # fmt: skip
async def test_journal_of_a_different_run_is_kept_and_the_error_says_what_differs(tmp_path, differing, text):
    await write_journal(tmp_path, result(1))
    before = (tmp_path / NAME).read_bytes()
    with pytest.raises(UsageError) as refused:
        Journal(tmp_path, resume=True).open(header(**differing))
    assert f"it differs {text}" in str(refused.value)
    assert (tmp_path / NAME).read_bytes() == before


async def test_journal_of_another_version_or_file_is_rejected_with_the_reason(tmp_path):
    """Scores of two versions might not mean the same."""
    await write_journal(tmp_path, result(1))
    path = tmp_path / NAME
    path.write_text(path.read_text().replace(f'"version":"{__version__}"', '"version":"9.8"', 1))
    with pytest.raises(UsageError, match=r"was written by ci-evals '9\.8', in form 4, and this is"):
        Journal(tmp_path, resume=True)
    path.write_text('{"name": "something else"}\n')
    with pytest.raises(UsageError, match="this is not a journal or recording of ci-evals"):
        Journal(tmp_path, resume=True)


async def test_errored_trials_before_recorded_outage_are_rerun(tmp_path):
    """Trials with an outcome stay; failures before a kill count as they would without it."""
    judged = build.finding("undecided", kind="judged", strict=None, cause="judge_error")
    half_judged = (build.finding("passed", kind="judged", strict=None), judged)
    trials = [result(1), result(2, status="failed"), result(3, findings=(judged,)), result(4)]
    trials.append(result(5, findings=half_judged))
    await write_journal(tmp_path, *trials)
    assert len(finished_in(tmp_path)) == 5
    await write_journal(tmp_path, *trials, mark="outage")
    assert finished_in(tmp_path) == [at(1), at(4)]


async def test_new_run_renames_journal_of_interrupted_run(tmp_path):
    """It was paid for; that of a run that ended makes room."""
    messages = []
    for _ in range(3):
        await write_journal(tmp_path, result(1), say=messages.append)
    aside = ["journal-2026-11-21T09-30-00Z-2.jsonl", "journal-2026-11-21T09-30-00Z.jsonl"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [*aside, NAME]
    assert "interrupted after 1 finished trial" in messages[0]
    await write_journal(tmp_path, result(1), mark="ended")
    await write_journal(tmp_path, result(1), mark="ended")
    assert len(list(tmp_path.iterdir())) == 4


async def test_journal_of_a_running_run_or_behind_a_symbolic_link_is_rejected(tmp_path):
    first = await open_journal(tmp_path, result(1))
    for second in (Journal(tmp_path), Journal(tmp_path, resume=True)):
        with pytest.raises(UsageError, match="another run is writing here"):
            second.open(header())
    first.close()
    again = Journal(tmp_path, resume=True)
    again.open(header())
    again.close()
    # A suite's repository may hold a link, and a container writes as root.
    (tmp_path / NAME).unlink()
    (tmp_path / NAME).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match=f"cannot write '.*{NAME}': it is a symbolic link"):
        Journal(tmp_path).open(header())
    assert not (tmp_path / "elsewhere").exists()


async def test_trial_written_by_old_run_after_resume_started_is_kept(tmp_path):
    """A run that was told to end may still write when its successor starts, and let go a moment later."""
    first = await open_journal(tmp_path, result(1))
    second = Journal(tmp_path, resume=True)
    await first.keep(at(2), result(2), 2)
    first.close()
    second.open(header())
    await second.keep(at(3), result(3), 3)
    second.close()
    assert list(second.past.done) == [at(1), at(2)]
    assert finished_in(tmp_path) == [at(1), at(2), at(3)]


@contextmanager
def disk_with_room_for(size):
    """Let files become no larger than that, as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("concurrent", [True, False])
async def test_full_disk_is_reported_once_and_trials_are_journaled_when_it_has_room(tmp_path, concurrent):
    """A trial that waits for the disk while another finds it full does not say that all is well."""
    messages, path = [], tmp_path / NAME
    journal = await open_journal(tmp_path, result(1), say=messages.append)
    size = path.stat().st_size
    with disk_with_room_for(size * 2 - 10 if concurrent else size + 100):
        keeping = [journal.keep(at(2), result(2), 2), journal.keep(at(3), result(3), 3)]
        if concurrent:
            await asyncio.gather(*keeping)
        else:
            for one in keeping:
                await one
            assert path.stat().st_size == size  # no half line stays
    (warning,) = messages
    assert "cannot be written (File too large): the run continues" in warning
    await journal.keep(at(4), result(4), 4)
    assert "can be written again: nothing is missing in it" in messages[1]
    assert len(messages) == 2
    assert len(finished_in(tmp_path)) == 4


async def test_journal_folder_removed_during_run_is_reported_once(tmp_path):
    """The file can still be written to, but nobody will ever read it."""
    messages = []
    journal = await open_journal(tmp_path / "results", say=messages.append)
    shutil.rmtree(tmp_path / "results")
    await journal.keep(at(1), result(1), 1)
    await journal.keep(at(2), result(2), 2)
    journal.close()
    (warning,) = messages
    assert "cannot be written (it was removed): the run continues" in warning


async def test_concurrently_finished_trials_are_all_journaled(tmp_path):
    journal = await open_journal(tmp_path)
    await asyncio.gather(*(journal.keep(at(index), result(index), index) for index in range(1, 101)))
    lines = (tmp_path / NAME).read_text().splitlines()
    assert sorted(json.loads(line)["index"] for line in lines[1:]) == list(range(1, 101))


SPAN = "00-{}-{}-01".format("a" * 32, "b" * 16)
OTHER = "00-{}-{}-01".format("c" * 32, "b" * 16)


def traced(index: int, traceparent: str | None = SPAN, **fields):
    return result(index, turns=(build.turn(1, traceparent=traceparent, **fields),))


LATE = {
    "its own trace": ({"traces": ("a" * 32,)}, [2, 3, 4]),
    "another trace": ({"traces": ("f" * 32,)}, [1, 2, 3, 4]),
    "any trace": ({"earlier": True}, [3, 4]),
    "two traces": ({"traces": ("a" * 32, "c" * 32)}, [3, 4]),
}


@pytest.mark.parametrize("late", LATE)
@pytest.mark.parametrize("before", [True, False])
async def test_trials_with_late_evidence_are_rerun_on_resume(tmp_path, late, before):
    """Unless their results say so already, or rest on no spans; a trial may be kept after its mark."""
    fields, expected = LATE[late]
    mark = JournalMark(mark="late_evidence", **fields)
    trials = [traced(1), traced(2, OTHER), traced(3, tool_calls_partial=True), traced(4, None)]
    journal = await open_journal(tmp_path)
    if before and not mark.earlier:
        journal.mark(mark)
    for one in trials:
        await journal.keep(at(one.index), one, 1.0)
    if not before or mark.earlier:
        journal.mark(mark)
        journal.mark(mark)
    await journal.keep(at(9), result(9), 60.0)
    journal.close()
    assert (tmp_path / NAME).read_text().count("late_evidence") == 1
    assert [trial.index for trial in finished_in(tmp_path)] == [*expected, 9]


@pytest.mark.parametrize(("ended", "expected"), [(False, [1, 3]), (True, [1, 2, 3])])
async def test_trials_with_possibly_late_spans_are_rerun_after_interruption(tmp_path, ended, expected):
    journal = await open_journal(tmp_path)
    for one, elapsed in ((traced(1), 1.0), (traced(2), 9.0), (traced(3, None), 10.0)):
        await journal.keep(at(one.index), one, elapsed)
    if ended:
        journal.mark(JournalMark(mark="ended"))
    journal.close()
    assert [trial.index for trial in finished_in(tmp_path)] == expected
