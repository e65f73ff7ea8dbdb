"""A run is recorded, and played again from the recording: with the same results, or with none."""

import asyncio
import json
from dataclasses import replace

import builders as build
import fakes
import pytest
from plans import planned

from ci_evals.adapters.recording.reader import Recording, is_written
from ci_evals.adapters.recording.records import NAME, ModelsRecord
from ci_evals.domain.errors import AgentAccessError, AgentError, LLMAnswerError, LLMError, UsageError
from ci_evals.domain.journal import JournalHeader
from ci_evals.domain.progress import TurnPlayed
from ci_evals.domain.results.run import Digests, Tool
from ci_evals.ports import Completion, Prompt
from ci_evals.runner import Options, Participants, run
from ci_evals.stop import Stop
from ci_evals.support.redaction import Redactor
from ci_evals.wiring.connections import Connections
from ci_evals.wiring.models import CheckedJudge
from ci_evals.wiring.recordings import RunRecorder, RunReplay

PASS, FAIL = (fakes.judged(verdict, "It greets.") for verdict in ("pass", "fail"))
JUDGED = {"criterion": "The agent greets"}
MEANT = {"criterion": "It means hello", "strict": "answer_matches", "expected": "Hi", "match": "semantic"}


def of_run(name="run-1"):
    """The run as its journal has it."""
    digests = Digests(**{field: field for field in Digests.model_fields})
    return JournalHeader(tool=Tool(version="0.1.0"), run=name, started_at=build.STARTED_AT, digests=digests)


class Folder:
    """A folder with a recording, made by `record` and played by `replay`."""

    def __init__(self, path, redactor=None):
        self.path, self.redactor, self.messages = path, redactor or Redactor(), []
        self.adapter = Connections(judge_model="judge-1", user_model="user-1", embedding_model="vectors-1")
        self.file = path / NAME

    def recorder(self, plan):
        return RunRecorder(
            self.path, plan, ModelsRecord(provider="openai"), self.redactor, self.messages.append
        )

    async def record(self, plan, participants, *, header=None, **options):
        recorder = self.recorder(plan)
        recorder.begin(header or of_run())
        results = await run(
            plan,
            lambda trial: recorder.participants(trial, participants),
            Options(**options),
            self.redactor,
            save=(recorder.keep,),
        )
        recorder.close()
        return results

    async def replay(self, plan, stop=None, **options):
        participants_for = RunReplay(Recording(self.path), plan, self.adapter, self.redactor).participants
        return await run(plan, participants_for, Options(**options), self.redactor, stop=stop)

    def lines(self):
        return [json.loads(line) for line in self.file.read_text().splitlines()]


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path / "recording")


def timeless(results):
    """Results without how long playing took."""
    return [result and result.model_copy(update={"duration_seconds": 0, "times": None}) for result in results]


def everybody(agent, user=("Hello", "Goodbye ###STOP###"), judge=(PASS,)):
    """A whole cast from lists of answers."""
    return Participants(
        agent,
        fakes.ScriptedLLM(user, "user-1"),
        fakes.ScriptedLLM(judge, "judge-1"),
        fakes.ScriptedEmbedder(lambda text: (1.0, len(text) / 7), "vectors-1"),
    )


def talk(*evaluations, **fields):
    """A plan of one test that needs all models."""
    test = {"turns": [{"user": "Hi"}, {"user": "auto"}], "maxTurns": 3, "name": "t"}
    return planned(test | {"evaluations": [*(evaluations or (JUDGED, MEANT))]}, **fields)


async def test_a_replay_gives_the_results_of_the_recorded_run(folder):
    """Words, traces, latencies, verdicts, tokens and costs, over several trials at a time."""
    plan = talk(JUDGED, JUDGED | {"criterion": "Another"}, MEANT, loops=6)
    trace = fakes.reply(
        "Hello\u200b there & <co>",
        latency_seconds=1.5,
        workflows=("W",),
        params={"n": 1.5, "list": [1, None, {"a": True}]},
        trace={"deep": [[["x"]]]},
        input_tokens=3,
    )
    dear = Completion(PASS, input_tokens=7, output_tokens=5, cost_usd=0.25)
    participants = everybody(fakes.ScriptedAgent([trace, "Bye"]), judge=[dear, FAIL, PASS])
    first = await folder.record(plan, participants, parallel=3)
    again = await folder.replay(plan, parallel=2)
    assert len({result.model_dump_json(include={"findings"}) for result in first}) > 1
    assert first[0].usage[-1].role == "embedder"
    assert timeless(again) == [clean(result) for result in timeless(first)]


def clean(result):
    """The result as a file can hold it: half of a surrogate pair is none."""
    text = json.dumps(result.model_dump(mode="json")).replace("\\ud800", "\\ufffd")
    return type(result).model_validate_json(text)


async def test_errors_are_raised_again(folder):
    """Of agent and models, in the attempts and in the verdicts."""
    agent = ["Hello", AgentError("down"), "Hello", "So so", "Fine", "Hello", "And?", "Hello"]
    participants = everybody(
        fakes.ScriptedAgent(lambda test, heard: agent.pop(0)),
        user=["How?", "How?", "Thanks", "How?", LLMError("user is out"), LLMError("still out")],
        judge=[LLMAnswerError("no JSON"), PASS, LLMError("judge is out")],
    )
    plan = talk(JUDGED, loops=2)
    first = await folder.record(plan, participants, retries=1)
    errors = [[attempt.error for attempt in result.attempts] for result in first]
    assert errors == [["down", None], ["user is out", "still out"]]
    assert first[1].findings[0].reason == "judge is out"
    assert timeless(await folder.replay(plan, retries=1)) == timeless(first)


async def test_a_refused_key_ends_the_replay_too(folder):
    """As it ended the run."""
    agent = fakes.ScriptedAgent(opening=AgentAccessError("the agent refused the key"))
    plan, stop = talk(JUDGED, loops=3), Stop()
    first = await folder.record(plan, everybody(agent))
    assert timeless(await folder.replay(plan, stop)) == timeless(first)
    assert stop.reason == "the agent refused the key"


async def test_no_secret_is_in_a_recording(tmp_path):
    """Nor needed to play it: a suite whose secrets are masked asks what was asked then."""
    key, order = "sk-0123456789", "ORDER 55/77"
    folder = Folder(tmp_path, Redactor(keys=[key], values=[order]))
    known = {
        "userInfo": {"order": order},
        "guidelines": f"Your order is {order}.",
        "turns": [{"user": f"Where is {order}?"}],
        "evaluations": [
            JUDGED | {"criterion": f"It finds {order}"},
            {"criterion": "It names the order", "strict": "contains", "text": order},
        ],
        "maxTurns": 2,
    }
    plan = planned({"name": "t"} | known)
    result = fakes.reply(f"{order} is on its way", params={order: order}, trace={"auth": f"Bearer {key}"})
    participants = everybody(fakes.ScriptedAgent([result]), user=[f"Thanks for {order}"])
    first = await folder.record(plan, participants)
    text = folder.file.read_text()
    assert "***" in text
    assert not [secret for secret in (key, order, "ORDER", "0123456789") if secret in text]
    folder.redactor = Redactor()
    masked = json.loads(json.dumps(known).replace(order, "***"))
    again = await folder.replay(planned({"name": "t"} | masked))
    assert timeless(again) == timeless(first)


async def test_a_secret_that_was_told_is_told_in_the_replay_too(tmp_path):
    """A check for it fails as it did, though `***` stands in its place; another weight changes nothing."""
    key, other = "sk-0123456789", "sk-9876543210"
    folder = Folder(tmp_path, Redactor(keys=[key, other]))
    checks = [
        {"criterion": "No key", "strict": "not_contains", "text": "sk-"},
        {"criterion": "No form", "strict": "not_regex", "pattern": "sk-[0-9]+"},
        {"criterion": "No gold", "strict": "not_contains", "text": "gold"},
        {"criterion": "Own key", "strict": "contains", "text": key},
    ]
    participants = everybody(fakes.ScriptedAgent([f"My key is {other}"]))
    (first,) = await folder.record(
        planned({"name": "t", "turns": [{"user": "Hi"}], "evaluations": checks}), participants
    )
    masked = json.loads(json.dumps(checks).replace(key, "***"))
    masked[0] |= {"weight": 7, "criterion": "Named anew"}
    folder.redactor = Redactor()
    plan = planned({"name": "t", "turns": [{"user": "Hi"}], "evaluations": masked})
    (again,) = await folder.replay(plan)
    outcomes = [[finding.outcome.value for finding in result.findings] for result in (first, again)]
    assert outcomes == [["failed", "failed", "passed", "failed"]] * 2
    assert "secrets are removed" in again.findings[0].reason
    stop = Stop()
    stop.interrupt()
    assert await folder.replay(plan, stop) == (None,)
    participants_for = RunReplay(Recording(folder.path), plan, folder.adapter, folder.redactor).participants
    listen = lambda event: isinstance(event, TurnPlayed) and stop.interrupt()  # noqa: E731
    stop = Stop()
    (cut,) = await run(plan, participants_for, Options(), folder.redactor, listen=listen, stop=stop)
    assert (cut.status, cut.findings, stop.bug) == ("interrupted", (), None)


async def test_changed_evaluations_are_decided_anew(folder):
    """That is what a recording is for; a new judged one was never asked."""
    participants = everybody(fakes.ScriptedAgent(["Hello"]))
    await folder.record(talk(JUDGED), participants)
    shout = {"criterion": "It shouts", "strict": "contains", "text": "HELLO!"}
    (result,) = await folder.replay(talk(shout, {"criterion": "New"}, JUDGED))
    found = [(finding.outcome, finding.cause) for finding in result.findings]
    assert found == [("failed", None), ("undecided", "judge_error"), ("passed", None)]
    assert result.findings[1].reason == (
        "the recording has no answer to this: the judge's question to judge-1 was not asked "
        "in the recorded run; record again"
    )


DIFFERENT = {
    "another message": (
        {"turns": [{"user": "Hey"}]},
        "the user says 'Hey', and said 'Hi' then",
    ),
    "another simulated user": (
        {"guidelines": "Be rude."},
        "the simulated user's question to user-1 was not asked in the recorded run",
    ),
    "one turn more": (
        {"turns": [{"user": "Hi"}, {"user": "Hello"}, {"user": "More"}]},
        "the user says 'More' although the conversation had ended",
    ),
    "another test": (
        {"name": "u"},
        "it has no trial 1 of the test 'u' of the suite 'S'",
    ),
}


@pytest.mark.parametrize("different", DIFFERENT)
async def test_what_was_not_recorded_fails(folder, different):
    """And the failure says what it is, whatever the number of attempts."""
    change, text = DIFFERENT[different]
    whole = {"name": "t", "turns": [{"user": "Hi"}], "maxTurns": 2, "evaluations": [JUDGED]}
    await folder.record(planned(whole), everybody(fakes.ScriptedAgent(["Hello"])))
    (result,) = await folder.replay(planned(whole | change), retries=1)
    assert result.status == "failed"
    assert [attempt.error for attempt in result.attempts] == [
        f"the recording has no answer to this: {text}; record again"
    ] * 2
    assert not [finding for finding in result.findings if finding.outcome == "passed"]


async def test_a_trial_or_an_attempt_more_is_not_made_up(folder):
    """With more loops or retries than then."""
    plan = talk(JUDGED)
    await folder.record(plan, everybody(fakes.ScriptedAgent([AgentError("down")])), retries=0)
    first, second = await folder.replay(replace(plan, loops=2), retries=1)
    assert [attempt.error for attempt in first.attempts] == [
        "down",
        "the recording has no answer to this: there was no attempt 2 at this trial then; record again",
    ]
    assert "no trial 2 of the test 't'" in second.error


async def test_another_model_has_given_no_answer(folder):
    """The results would name one that was never asked."""
    plan = talk(JUDGED)
    await folder.record(plan, everybody(fakes.ScriptedAgent(["Hello"])))
    folder.adapter = replace(folder.adapter, judge_model="judge-2")
    (result,) = await folder.replay(plan)
    assert result.findings[0].outcome == "undecided"
    assert "the judge's question to judge-2 was not asked in the recorded run" in result.findings[0].reason


async def test_equal_questions_are_answered_in_their_order(folder):
    """Two criteria of the same words; the first is asked twice."""
    plan = talk(JUDGED, JUDGED)
    participants = everybody(fakes.ScriptedAgent(["Hello"]), judge=["what?", FAIL, PASS])
    first = await folder.record(plan, participants)
    assert sorted(f.outcome for f in first[0].findings) == ["failed", "passed"]
    assert timeless(await folder.replay(plan)) == timeless(first)


async def test_a_suite_is_found_by_its_name_too(folder):
    """Its file is called otherwise from another folder."""
    plan = talk(JUDGED)
    first = await folder.record(plan, everybody(fakes.ScriptedAgent(["Hello"])))
    elsewhere = replace(plan, suites=tuple(replace(one, file="/x/s.json") for one in plan.suites))
    assert timeless(await folder.replay(elsewhere)) == timeless(first)


async def test_a_suite_of_a_name_that_two_have_is_not_guessed(folder):
    """Neither need be the one."""
    (suite,) = talk(JUDGED).suites
    plan = replace(talk(JUDGED), suites=(suite, replace(suite, file="other.json")))
    await folder.record(plan, everybody(fakes.ScriptedAgent(["Hello"])))
    elsewhere = replace(plan, suites=(replace(suite, file="third.json"),))
    (result,) = await folder.replay(elsewhere)
    assert "it has no trial 1 of the test 't' of the suite 'S'" in result.error


async def test_an_interrupted_trial_is_not_recorded(folder):
    """What was said in it is half a conversation."""
    stop, plan = Stop(), talk(JUDGED)

    class Halting(fakes.ScriptedAgent):
        async def send_message(self, session, text, *, timeout):  # noqa: ASYNC109
            stop.interrupt()
            return await super().send_message(session, text, timeout=timeout)

    recorder = folder.recorder(plan)
    recorder.begin(of_run())
    participants = everybody(Halting())
    await run(
        plan,
        lambda trial: recorder.participants(trial, participants),
        Options(),
        Redactor(),
        save=(recorder.keep,),
        stop=stop,
    )
    recorder.close()
    assert len(folder.lines()) == 1


async def test_a_killed_run_leaves_a_good_recording(folder):
    """Its torn last line is passed over, wherever it was torn."""
    plan = talk(JUDGED, loops=2)
    first = await folder.record(plan, everybody(fakes.ScriptedAgent(["Hello"])))
    whole = folder.file.read_bytes()
    start = whole.rindex(b"\n", 0, -1) + 1
    for end in (start + 1, (start + len(whole)) // 2, len(whole) - 1):
        folder.file.write_bytes(whole[:end])
        assert Recording(folder.path).torn
        left, lost = await folder.replay(plan)
        assert timeless([left]) == timeless(first[:1])
        assert "no trial 2" in lost.error
    folder.file.write_bytes(whole)
    assert not Recording(folder.path).torn


async def test_a_run_taken_up_again_goes_on_with_its_recording(folder):
    """What was torn is written anew, and what was played twice counts as it was last."""
    plan = talk(JUDGED, loops=2)
    await folder.record(plan, everybody(fakes.ScriptedAgent(["Hello"])))
    folder.file.write_bytes(folder.file.read_bytes()[:-5])
    last = await folder.record(plan, everybody(fakes.ScriptedAgent(["Again"])))
    assert [line.get("index") for line in folder.lines()] == [None, 1, 1, 2]
    assert timeless(await folder.replay(plan)) == timeless(last)


async def test_a_recording_of_another_run_is_not_written_over(folder):
    """It has been paid for. One without a trial has not."""
    plan = talk(JUDGED)
    empty = folder.recorder(plan)
    empty.begin(of_run("empty"))
    empty.close()
    await folder.record(plan, everybody(fakes.ScriptedAgent(["Hello"])), header=of_run("first"))
    before = folder.file.read_bytes()
    with pytest.raises(UsageError, match=r"is there already, of the run of 2026-11-21 09:30 UTC, and not"):
        folder.recorder(plan).begin(of_run("second"))
    assert folder.file.read_bytes() == before
    assert Recording(folder.path).header.run == "first"


async def test_what_is_no_recording_is_not_written_over_either(folder):
    """Whatever it is."""
    folder.path.mkdir()
    folder.file.write_text("precious\n")
    with pytest.raises(UsageError, match="is not a recording"):
        folder.recorder(talk()).begin(of_run())
    assert folder.file.read_text() == "precious\n"


async def test_a_full_disk_ends_no_run(folder):
    """It is said once, and at the end how much is missing."""
    plan = talk(JUDGED, loops=2)
    recorder = folder.recorder(plan)
    recorder.begin(of_run())
    recorder.close()  # whatever is written now fails
    participants = everybody(fakes.ScriptedAgent(["Hello"]))
    results = await run(
        plan,
        lambda trial: recorder.participants(trial, participants),
        Options(),
        Redactor(),
        save=(recorder.keep,),
    )
    recorder.close()
    assert [result.status for result in results] == ["stopped", "stopped"]
    assert [line.partition(NAME)[2] for line in folder.messages] == [
        " cannot be written (it is not open): the run continues, but its recording will have gaps",
        " lacks 2 of the played trials",
    ]


BAD = {
    "nothing": ("", "is not a recording: it ends before it has begun"),
    "other JSON": ('{"journalVersion": 1}\n', "is not a recording of ci-evals"),
    "no JSON": ("[" * 100_000 + "\n", "is not a recording of ci-evals"),
    "a newer form": (
        '{"recordingVersion": 3, "tool": {"version": "9.9"}}\n',
        "was recorded by ci-evals '9.9' in form 3, and this version replays form 2; record again",
    ),
    "the form that kept verdicts under another key": (
        '{"recordingVersion": 1, "tool": {"version": "0.1.0"}}\n',
        "was recorded by ci-evals '0.1.0' in form 1, and this version replays form 2; record again",
    ),
    "a poor header": ('{"recordingVersion": 2}\n', "line 1 cannot be read: tool: Field required"),
}


@pytest.mark.parametrize("bad", BAD)
def test_bad_recordings_are_refused(folder, bad):
    """With what is wrong."""
    text, output = BAD[bad]
    folder.path.mkdir()
    folder.file.write_text(text)
    with pytest.raises(UsageError) as caught:
        Recording(folder.path)
    assert output in str(caught.value)


async def test_a_line_that_somebody_has_broken_is_named(folder):
    """Only the last one may be torn."""
    await folder.record(talk(JUDGED, loops=2), everybody(fakes.ScriptedAgent(["Hello"])))
    header, first, second = folder.file.read_text().splitlines(keepends=True)
    broken = first.replace('"agent":"Hello"', '"agent":7')
    assert broken != first
    folder.file.write_text(header + broken + second)
    with pytest.raises(UsageError, match=r"line 2 cannot be read: attempts\.0\.answers\.0\.answer"):
        Recording(folder.path)


def test_a_folder_without_a_recording_says_so(tmp_path):
    """And how one is made."""
    with pytest.raises(UsageError, match=r"there is no recording in .* --record makes one"):
        Recording(tmp_path)


async def test_two_runs_do_not_record_to_one_file(tmp_path):
    """The second is refused, and so is a replay meanwhile; the file is as the first one has it."""
    plan, folder = planned({"name": "t", "evaluations": [JUDGED]}), Folder(tmp_path)
    first, second = folder.recorder(plan), folder.recorder(plan)
    first.begin(of_run())
    before = folder.file.read_bytes()
    with pytest.raises(UsageError, match="another run is recording to"):
        second.begin(of_run("run-2"))
    assert is_written(tmp_path)
    assert is_written(folder.file)
    assert folder.file.read_bytes() == before
    first.close()
    assert not is_written(tmp_path)


@pytest.mark.parametrize("left", [b"", b'{"recordingV', b'{"recordingVersion":2,"tool":{"na'])
async def test_a_recording_that_was_killed_in_its_first_line_begins_anew(tmp_path, left):
    """There is nothing in it to lose."""
    plan, folder = planned({"name": "t", "evaluations": [JUDGED]}), Folder(tmp_path)
    folder.file.write_bytes(left)
    recorder = folder.recorder(plan)
    recorder.begin(of_run())
    recorder.close()
    assert Recording(tmp_path).count == 0


async def test_a_judge_check_that_was_cut_off_keeps_the_answers_so_far(folder):
    """A run that is interrupted meanwhile still ends in order."""
    recorder = folder.recorder(talk())
    recorder.begin(of_run())
    (judge,) = recorder.judges([CheckedJudge(fakes.ScriptedLLM([PASS], "judge-1"))])
    await judge.llm.complete(Prompt("", "a"))
    unanswered = asyncio.create_task(judge.llm.complete(Prompt("", "b")))
    await asyncio.sleep(0)
    recorder.keep_judge_check()
    unanswered.cancel()
    recorder.close()
    assert len(Recording(folder.path).judge_check().judge) == 1
