"""A run is recorded, and played again from the recording: with the same results, or with none."""

import asyncio
import itertools
import json
from dataclasses import fields, replace

import builders as build
import fakes
import pytest
from each_row import each_row
from plans import make_plan

from ci_evals._version import __version__
from ci_evals.adapters.journal.capture import RunCapture
from ci_evals.adapters.journal.journal import Journal
from ci_evals.adapters.journal.reading import Recording
from ci_evals.adapters.journal.records import JOURNAL, JournalHeader, JournalMark, Recorded
from ci_evals.adapters.journal.records import RECORDING as NAME
from ci_evals.domain.errors import AgentAccessError, AgentError, LLMAnswerError, LLMError, UsageError
from ci_evals.domain.progress import TurnPlayed
from ci_evals.domain.results.run import Digests, Tool
from ci_evals.domain.transcript import ProbeResult
from ci_evals.job.late_evidence import with_gaps
from ci_evals.ports import Completion, Prompt
from ci_evals.runner import Options, Participants, run
from ci_evals.stop import Stop
from ci_evals.support import dataclass_json
from ci_evals.support.redaction import Redactor
from ci_evals.wiring.connections import Connections
from ci_evals.wiring.models import CheckedJudge
from ci_evals.wiring.recordings import ReplayedPlayers, recorded, recorded_judges

PASS, FAIL = (fakes.judge_answer(verdict, "It greets.") for verdict in ("pass", "fail"))
JUDGED = {"criterion": "The agent greets"}
MEANT = {"criterion": "It means hello", "strict": "answer_matches", "expected": "Hi", "match": "semantic"}


class Recorder:
    """The journal of a run that is recorded, and what it captures."""

    def __init__(self, folder, plan, *, resume=False):
        self.plan, self.redactor = plan, folder.redactor
        self.journal = Journal(folder.results, resume=resume, record=folder.path, say=folder.messages.append)
        self.capture = RunCapture(plan, folder.redactor)

    def begin(self, name="run-1"):
        header = JournalHeader(
            tool=Tool(version=__version__),
            run=name,
            started_at=build.STARTED_AT,
            digests=Digests(**{field.name: field.name for field in fields(Digests)}),
            recorded=Recorded.of(self.plan, {"provider": "openai"}, self.redactor),
        )
        self.journal.open(header)
        return self

    async def keep(self, trial, result):
        await self.journal.keep(trial, result, 1.0, answers=self.capture.finish(trial))

    async def play(self, participants, *, stop=None, done=None, **options):
        return await run(
            self.plan,
            lambda trial: recorded(participants, self.capture.begin(trial)),
            Options(**options),
            self.redactor,
            done=done or {},
            save=self.keep,
            stop=stop,
        )


class Folder:
    """A folder with a recording, made by `record` and played by `replay`, beside the journal of its run."""

    def __init__(self, path, redactor=None):
        self.path, self.redactor, self.messages = path, redactor or Redactor(), []
        self.results = path / "results"
        self.adapter = Connections(judge_model="judge-1", user_model="user-1", embedding_model="vectors-1")
        self.file = path / NAME

    async def record(self, plan, participants=None, *, name="run-1", **options):
        recorder = Recorder(self, plan).begin(name)
        results = await recorder.play(participants or greeting(), **options)
        recorder.journal.close()
        return results

    async def resume(self, plan, participants):
        """Resume the run; the results are those of trials that were not finished."""
        recorder = Recorder(self, plan, resume=True).begin()
        done = recorder.journal.past.done if recorder.journal.past else {}
        results = await recorder.play(participants, done=done)
        recorder.journal.close()
        return results

    async def replay(self, plan, stop=None, **options):
        played = ReplayedPlayers(Recording(self.path), plan, self.adapter, self.redactor)
        return await run(plan, played.participants, Options(**options), self.redactor, stop=stop)

    def lines(self):
        return [json.loads(line) for line in self.file.read_text().splitlines()]


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path / "recording")


def without_durations(results):
    """Results without how long playing took."""
    return [result and replace(result, duration_seconds=0, times=None) for result in results]


def participants_with(agent, user=("Hello", "Goodbye ###STOP###"), judge=(PASS,)):
    """All participants, from lists of answers."""
    return Participants(
        agent,
        fakes.ScriptedLLM(user, "user-1"),
        fakes.ScriptedLLM(judge, "judge-1"),
        fakes.ScriptedEmbedder(lambda text: (1.0, len(text) / 7), "vectors-1"),
    )


def greeting(text="Hello"):
    return participants_with(fakes.ScriptedAgent([text]))


def dialog_plan(*evaluations, **fields):
    """A plan of one test that needs all models."""
    test = {"turns": [{"user": "Hi"}, {"user": "auto"}], "maxTurns": 3, "name": "t"}
    return make_plan(test | {"evaluations": [*(evaluations or (JUDGED, MEANT))]}, **fields)


def one_turn(*evaluations, **fields):
    """A plan of one test of one fixed message."""
    test = {"name": "t", "turns": [{"user": "Hi"}], "maxTurns": 1, "evaluations": [*evaluations]}
    return make_plan(test, **fields)


async def test_replay_gives_the_results_of_the_recorded_run(folder):
    plan = dialog_plan(JUDGED, JUDGED | {"criterion": "Another"}, MEANT, loops=6)
    trace = fakes.reply(
        "Hello\u200b there & <co>",
        latency_seconds=1.5,
        workflows=("W",),
        input_tokens=3,
        params={"n": 1.5, "list": [1, None, {"a": True}]},
        trace={"deep": [[["x"]]]},
    )
    dear = Completion(PASS, input_tokens=7, output_tokens=5, cost_usd=0.25)
    participants = participants_with(fakes.ScriptedAgent([trace, "Bye"]), judge=[dear, FAIL, PASS])
    first = await folder.record(plan, participants, parallel=3)
    again = await folder.replay(plan, parallel=2)
    assert len({result.findings for result in first}) > 1
    assert first[0].usage[-1].role == "embedder"
    assert without_durations(again) == [without_surrogates(result) for result in without_durations(first)]


def without_surrogates(result):
    """The result as a file can hold it: half of a surrogate pair is none."""
    text = json.dumps(dataclass_json.to_value(result)).replace("\\ud800", "\\ufffd")
    return dataclass_json.from_json(type(result), text)


async def test_recorded_errors_recur_in_the_replay_and_a_rejected_key_stops_it(folder):
    agent = ["Hello", AgentError("down"), "Hello", "So so", "Fine", "Hello", "And?", "Hello"]
    participants = participants_with(
        fakes.ScriptedAgent(lambda test, heard: agent.pop(0)),
        user=["How?", "How?", "Thanks", "How?", LLMError("user is out"), LLMError("still out")],
        judge=[LLMAnswerError("no JSON"), PASS, LLMError("judge is out")],
    )
    plan = dialog_plan(JUDGED, loops=2)
    first = await folder.record(plan, participants, retries=1)
    errors = [[attempt.error for attempt in result.attempts] for result in first]
    assert errors == [["down", None], ["user is out", "still out"]]
    assert first[1].findings[0].reason == "judge is out"
    assert without_durations(await folder.replay(plan, retries=1)) == without_durations(first)
    folder = Folder(folder.path / "key")
    agent = fakes.ScriptedAgent(opening=AgentAccessError("the agent refused the key"))
    plan, stop = dialog_plan(JUDGED, loops=3), Stop()
    first = await folder.record(plan, participants_with(agent))
    assert without_durations(await folder.replay(plan, stop)) == without_durations(first)
    assert stop.reason == "the agent refused the key"


async def test_recording_holds_no_secret_and_replays_without_it(tmp_path):
    key, order = "sk-0123456789", "ORDER 55/77"
    folder = Folder(tmp_path, Redactor(keys=[key], values=[order]))
    checks = [
        JUDGED | {"criterion": f"It finds {order}"},
        {"criterion": "It names the order", "strict": "contains", "text": order},
    ]
    known = {
        "userInfo": {"order": order}, "guidelines": f"Your order is {order}.", "maxTurns": 2,
        "turns": [{"user": f"Where is {order}?"}], "evaluations": checks,
    }  # fmt: skip
    plan = make_plan({"name": "t"} | known)
    result = fakes.reply(f"{order} is on its way", params={order: order}, trace={"auth": f"Bearer {key}"})
    participants = participants_with(fakes.ScriptedAgent([result]), user=[f"Thanks for {order}"])
    first = await folder.record(plan, participants)
    text = folder.file.read_text()
    assert "***" in text
    assert not [secret for secret in (key, order, "ORDER", "0123456789") if secret in text]
    folder.redactor = Redactor()
    masked = json.loads(json.dumps(known).replace(order, "***"))
    again = await folder.replay(make_plan({"name": "t"} | masked))
    assert without_durations(again) == without_durations(first)


async def test_check_for_a_leaked_secret_fails_in_the_replay_too(tmp_path):
    """A check for it fails as it did, though `***` stands in its place; another weight changes nothing."""
    key, other = "sk-0123456789", "sk-9876543210"
    folder = Folder(tmp_path, Redactor(keys=[key, other]))
    checks = [
        {"criterion": "No key", "strict": "not_contains", "text": "sk-"},
        {"criterion": "No form", "strict": "not_regex", "pattern": "sk-[0-9]+"},
        {"criterion": "No gold", "strict": "not_contains", "text": "gold"},
        {"criterion": "Own key", "strict": "contains", "text": key},
    ]
    (first,) = await folder.record(one_turn(*checks), greeting(f"My key is {other}"))
    masked = json.loads(json.dumps(checks).replace(key, "***"))
    masked[0] |= {"weight": 7, "criterion": "Named anew"}
    folder.redactor = Redactor()
    plan = one_turn(*masked)
    (again,) = await folder.replay(plan)
    outcomes = [[finding.outcome.value for finding in result.findings] for result in (first, again)]
    assert outcomes == [["failed", "failed", "passed", "failed"]] * 2
    assert "secrets are removed" in again.findings[0].reason


async def test_interrupted_replay_has_no_results(folder):
    plan, stop = one_turn(JUDGED), Stop()
    await folder.record(plan)
    stop.interrupt()
    assert await folder.replay(plan, stop) == (None,)
    played = ReplayedPlayers(Recording(folder.path), plan, folder.adapter, folder.redactor)
    listen = lambda event: isinstance(event, TurnPlayed) and stop.interrupt()  # noqa: E731
    stop = Stop()
    (cut,) = await run(plan, played.participants, Options(), folder.redactor, listen=listen, stop=stop)
    assert (cut.status, cut.findings, stop.bug) == ("interrupted", (), None)


class Shop:
    """A world whose probe returns how often it was asked."""

    def __init__(self):
        self.counts = itertools.count(1)

    async def set_up(self, world, names): ...

    async def probe(self, world, names):
        number = next(self.counts)
        return {name: ProbeResult(value=number) for name in world.probes}

    probe_before, tear_down = probe, set_up

    def notes(self):
        return ()


async def test_replay_has_the_recorded_probes_and_is_undecided_on_others(folder):
    check = {"criterion": "Refunded", "strict": "state", "probe": "shop", "path": "$", "equals": 2}
    plan = one_turn(check, probes={"shop": {"http": {"url": "http://shop/1"}}})
    first = await folder.record(plan, replace(greeting(), world=Shop()))
    assert (first[0].probes_before["shop"].value, first[0].probes["shop"].value) == (1, 2)
    assert without_durations(await folder.replay(plan)) == without_durations(first)
    more = one_turn(check | {"probe": "till"}, probes={"till": {"http": {"url": "http://shop/2"}}})
    (again,) = await folder.replay(more)
    assert again.findings[0].outcome == "undecided"


async def test_replay_decides_changed_checks_but_not_new_judged_criteria(folder):
    await folder.record(dialog_plan(JUDGED))
    shout = {"criterion": "It shouts", "strict": "contains", "text": "HELLO!"}
    (result,) = await folder.replay(dialog_plan(shout, {"criterion": "New"}, JUDGED))
    verdicts = [(finding.outcome, finding.cause) for finding in result.findings]
    assert verdicts == [("failed", None), ("undecided", "judge_error"), ("passed", None)]
    assert result.findings[1].reason == (
        "the recording has no answer to this: the judge's question to judge-1 was not asked "
        "in the recorded run; record again"
    )


UNRECORDED = {
    "another message": ({"turns": [{"user": "Hey"}]}, "the user says 'Hey', and said 'Hi' then"),
    "another simulated user": (
        {"guidelines": "Be rude."},
        "the simulated user's question to user-1 was not asked in the recorded run"),
    "one turn more": (
        {"turns": [{"user": "Hi"}, {"user": "Hello"}, {"user": "More"}]},
        "the user says 'More' although the conversation had ended"),
    "another test": ({"name": "u"}, "it has no trial 1 of the test 'u' of the suite 'S'"),
}  # fmt: skip


@pytest.mark.parametrize("different", UNRECORDED)
async def test_replay_of_an_unrecorded_call_fails(folder, different):
    change, text = UNRECORDED[different]
    whole = {"name": "t", "turns": [{"user": "Hi"}], "maxTurns": 2, "evaluations": [JUDGED]}
    await folder.record(make_plan(whole))
    (result,) = await folder.replay(make_plan(whole | change), retries=1)
    assert result.status == "failed"
    error = f"the recording has no answer to this: {text}; record again"
    assert [attempt.error for attempt in result.attempts] == [error] * 2
    assert not [finding for finding in result.findings if finding.outcome == "passed"]


async def test_replay_of_more_trials_or_attempts_fails_and_by_another_judge_is_undecided(folder):
    plan = dialog_plan(JUDGED)
    await folder.record(plan, participants_with(fakes.ScriptedAgent([AgentError("down")])), retries=0)
    first, second = await folder.replay(replace(plan, loops=2), retries=1)
    assert [attempt.error for attempt in first.attempts] == [
        "down",
        "the recording has no answer to this: there was no attempt 2 at this trial then; record again",
    ]
    assert "no trial 2 of the test 't'" in second.error
    # The results would name a judge that was never asked.
    folder = Folder(folder.path / "other judge")
    await folder.record(plan)
    folder.adapter = replace(folder.adapter, judge_model="judge-2")
    (result,) = await folder.replay(plan)
    assert result.findings[0].outcome == "undecided"
    assert "the judge's question to judge-2 was not asked in the recorded run" in result.findings[0].reason


async def test_equal_judge_questions_are_replayed_in_their_order(folder):
    plan = dialog_plan(JUDGED, JUDGED)
    judge = ["what?", FAIL, PASS]
    first = await folder.record(plan, participants_with(fakes.ScriptedAgent(["Hello"]), judge=judge))
    assert sorted(f.outcome for f in first[0].findings) == ["failed", "passed"]
    assert without_durations(await folder.replay(plan)) == without_durations(first)


async def test_moved_suite_is_matched_by_name_unless_name_is_ambiguous(folder):
    plan = dialog_plan(JUDGED)
    first = await folder.record(plan)
    (suite,) = plan.suites
    moved = replace(plan, suites=(replace(suite, file="/x/s.json"),))
    assert without_durations(await folder.replay(moved)) == without_durations(first)
    folder = Folder(folder.path / "ambiguous")
    await folder.record(replace(plan, suites=(suite, replace(suite, file="other.json"))))
    (result,) = await folder.replay(moved)
    assert "it has no trial 1 of the test 't' of the suite 'S'" in result.error


async def test_interrupted_trial_is_not_recorded(folder):
    stop, plan = Stop(), dialog_plan(JUDGED)

    class Halting(fakes.ScriptedAgent):
        async def send_message(self, session, text, *, timeout):  # noqa: ASYNC109
            stop.interrupt()
            return await super().send_message(session, text, timeout=timeout)

    await folder.record(plan, participants_with(Halting()), stop=stop)
    assert len(folder.lines()) == 1


async def test_truncated_recording_is_flagged_and_lacks_only_its_last_trial(folder):
    """A kill leaves such a file, whatever the place of the cut."""
    plan = dialog_plan(JUDGED, loops=2)
    first = await folder.record(plan)
    whole = folder.file.read_bytes()
    start = whole.rindex(b"\n", 0, -1) + 1
    for end in (start + 1, (start + len(whole)) // 2, len(whole) - 1):
        folder.file.write_bytes(whole[:end])
        assert Recording(folder.path).torn
        left, lost = await folder.replay(plan)
        assert without_durations([left]) == without_durations(first[:1])
        assert "no trial 2" in lost.error
    folder.file.write_bytes(whole)
    assert not Recording(folder.path).torn


def cut_file(path, end):
    path.write_bytes(path.read_bytes()[:end])


async def test_resumed_run_continues_its_recording_and_restores_a_damaged_one(folder):
    """The journal alone counts: what the recording lost is written again, and nothing is played for it."""
    plan = dialog_plan(JUDGED, loops=2)
    first = await folder.record(plan)
    cut_file(folder.results / JOURNAL, -5)
    cut_file(folder.file, -2000)
    again = await folder.resume(plan, greeting("Again"))
    assert without_durations(again[:1]) == without_durations(first[:1])
    assert [line.get("index") for line in folder.lines()] == [None, 1, 2]
    assert without_durations(await folder.replay(plan)) == without_durations(again)
    whole = folder.file.read_bytes()
    for damage in (folder.file.unlink, lambda: cut_file(folder.file, 20)):
        damage()
        await folder.resume(plan, participants_with(fakes.ScriptedAgent([])))
        assert folder.file.read_bytes() == whole == (folder.results / JOURNAL).read_bytes()
    assert without_durations(await folder.replay(plan)) == without_durations(again)


async def test_run_that_was_not_recorded_cannot_be_recorded_when_resumed(folder):
    """A recorded run can, even if it was resumed without --record before: its journal holds all answers."""
    plan = dialog_plan(JUDGED, loops=2)
    await folder.record(plan)
    cut_file(folder.results / JOURNAL, -5)
    assert Journal(folder.results, resume=True).holds_answers
    plain = Folder(folder.path / "plain")
    journal = Journal(plain.results)
    assert not journal.holds_answers
    journal.open(JournalHeader.model_validate(folder.lines()[0] | {"recorded": None}))
    journal.close()
    with pytest.raises(UsageError, match=r"`record=`: .* holds no answers, since its run was not recorded"):
        Recorder(plain, plan, resume=True).begin()
    assert not plain.file.exists()


async def test_recording_of_another_run_or_another_file_is_not_overwritten(folder):
    """It has been paid for. One without a trial has not."""
    plan = dialog_plan(JUDGED)
    Recorder(folder, plan).begin("empty").journal.close()
    await folder.record(plan, name="first")
    before = folder.file.read_bytes()
    with pytest.raises(UsageError, match=r"is there already, of the run of 2026-11-21 09:30 UTC, and not"):
        Recorder(folder, plan)
    assert (folder.file.read_bytes(), Recording(folder.path).header.run) == (before, "first")
    folder = Folder(folder.path / "other")
    folder.path.mkdir()
    folder.file.write_text("precious\n")
    with pytest.raises(UsageError, match="is not a journal or recording"):
        Recorder(folder, plan)
    assert (folder.file.read_text(), folder.results.exists()) == ("precious\n", False)


async def test_unwritable_recording_is_reported_once_and_the_run_continues(folder):
    recorder = Recorder(folder, dialog_plan(JUDGED, loops=2)).begin()
    recorder.journal.close()  # whatever is written now fails
    results = await recorder.play(greeting())
    recorder.journal.close()
    assert [result.status for result in results] == ["stopped", "stopped"]
    lacking = "its recording may lack what finishes now"
    assert [line.partition(NAME)[2] for line in folder.messages if NAME in line] == [
        f" cannot be written (it is not open): the run continues, but {lacking}",
        " lacks its last 2 lines",
    ]


async def test_replay_omits_evidence_that_arrived_late_in_recorded_run(folder):
    """The corrected result is appended without answers, and the recorded reply gets its gap."""
    plan = one_turn({"criterion": "No refund", "strict": "tool_not_used", "toolName": "REFUND"})
    trace = "00-{}-{}-01".format("a" * 32, "b" * 16)
    reply = fakes.reply("Hello", workflows=(), tool_calls=(), traceparent=trace)
    recorder = Recorder(folder, plan).begin()
    (result,) = await recorder.play(greeting(reply))
    assert result.findings[0].outcome == "passed"
    recorder.journal.mark(JournalMark(mark="late_evidence", traces=("a" * 32,)))
    (trial,) = plan.trials
    corrected = with_gaps(plan.test_of(trial), result, {1: "a span came after the turn was read"})
    await recorder.keep(trial, corrected)
    recorder.journal.close()
    (again,) = await folder.replay(plan)
    assert (again.findings[0].outcome, again.turns) == ("undecided", corrected.turns)


FOREIGN = "this is not a journal or recording of ci-evals"
NEEDS_FORM_4 = f"and this is {__version__}, with form 4; record again"


@each_row(("text", "message"), [
    ("", "is not a recording: it ends before it has begun"),
    ('{"schemaVersion": 3}\n', FOREIGN),
    ("[" * 100_000 + "\n", FOREIGN),
    ('{"journalVersion": 5, "tool": {"version": "9.9"}}\n', f"'9.9', in form 5, {NEEDS_FORM_4}"),
    ('{"recordingVersion": 2, "tool": {"version": "0.1.0"}}\n', f"'0.1.0', in form 2, {NEEDS_FORM_4}"),
    ('{"journalVersion": 4}\n', "line 1 cannot be read: tool: Field required"),
])  # fmt: skip
def test_unreadable_recording_is_rejected_with_the_reason_or_needed_version(tmp_path, text, message):
    (tmp_path / NAME).write_text(text)
    with pytest.raises(UsageError) as caught:
        Recording(tmp_path)
    assert message in str(caught.value)


async def test_missing_altered_or_empty_recording_is_rejected_with_place_or_remedy(folder):
    with pytest.raises(UsageError, match=r"there is no recording in .* `record=` makes one"):
        Recording(folder.path)
    await folder.record(dialog_plan(JUDGED, loops=2))
    header, first, second = folder.file.read_text().splitlines(keepends=True)
    result, answers, rest = first.partition('"answers":{')
    broken = result + answers + rest.replace('"agent":"Hello"', '"agent":7')
    assert broken != first
    folder.file.write_text(header + broken + second)
    with pytest.raises(UsageError, match=r"line 2 cannot be read: answers\.attempts\.0\.answers\.0\.answer"):
        Recording(folder.path)
    folder.file.write_text(json.dumps(json.loads(header) | {"recorded": None}) + "\n")
    with pytest.raises(UsageError, match="holds no answers; run again with `record=`"):
        Recording(folder.path)


async def test_second_run_cannot_record_to_the_same_file(tmp_path):
    plan, folder = dialog_plan(JUDGED), Folder(tmp_path)
    first = Recorder(folder, plan)
    folder.results = tmp_path / "elsewhere"
    late = Recorder(folder, plan)
    first.begin()
    before = folder.file.read_bytes()
    with pytest.raises(UsageError, match="another run is writing here"):
        late.begin("run-2")
    with pytest.raises(UsageError, match="a run is still recording to"):
        Recorder(folder, plan)
    for path in (tmp_path, folder.file):
        with pytest.raises(UsageError, match="a run is still recording to"):
            Recording(path)
    assert folder.file.read_bytes() == before
    first.journal.close()
    assert Recording(tmp_path).count == 0


async def test_recording_with_truncated_header_is_started_over(tmp_path):
    for left in (b"", b'{"journalV', b'{"journalVersion":4,"tool":{"na'):
        (tmp_path / NAME).write_bytes(left)
        Recorder(Folder(tmp_path), dialog_plan(JUDGED)).begin().journal.close()
        assert Recording(tmp_path).count == 0


async def test_interrupted_judge_check_keeps_the_answers_so_far(folder):
    recorder = Recorder(folder, dialog_plan()).begin()
    checked = [CheckedJudge(fakes.ScriptedLLM([PASS], "judge-1"))]
    (judge,) = recorded_judges(checked, recorder.capture)
    await judge.llm.complete(Prompt("", "a"))
    unanswered = asyncio.create_task(judge.llm.complete(Prompt("", "b")))
    await asyncio.sleep(0)
    recorder.journal.mark(recorder.capture.judge_check_answers())
    unanswered.cancel()
    recorder.journal.close()
    assert len(Recording(folder.path).judge_check()) == 1
