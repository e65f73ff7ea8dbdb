"""`ci-evals noise` as its users start it: after a run, against servers whose noise is known."""

import json
import shutil
import signal
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

import fakes
import pytest
import seeded_judges
import world
from commands import ci_evals, read_files, read_results, start, write_suite

from ci_evals.cli.run_context import RunContext
from ci_evals.domain.errors import UsageError
from ci_evals.domain.progress import TrialFinished
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import TestResult
from ci_evals.extensions.demo.server import DemoServer
from ci_evals.extensions.noise.command import measure_noise
from ci_evals.extensions.noise.preparation import prepare
from ci_evals.extensions.noise.report import BEST
from ci_evals.extensions.noise.settings import NoiseSettings
from ci_evals.extensions.noise.study import measure
from ci_evals.stop import Stop
from ci_evals.support import dataclass_json

pytestmark = pytest.mark.slow

TESTS = [
    {
        "name": f"Test {number}",
        "userInfo": {"tenant": "${TENANT}"},
        "turns": [{"user": "auto"}],
        "evaluations": [{"criterion": f"It helps with order {number}"}],
    }
    for number in range(8)
]
TENANT = "tenant-4711-blue"
PRICES = "models: {judge-1: {input: 1, output: 1}, user-1: {input: 3, output: 3}}"
MODELS = ("--judge-model=judge-1", "--user-model=user-1", "--prices=prices.yaml")


@dataclass
class FaultyServers:
    """Servers that go wrong with known chances, each call by a draw of its own."""

    agent: float = 0.0  # chance of a reply that does not help
    user: float = 0.0  # chance of a message that no agent could help with
    judge: float = 0.0  # chance of a verdict that is turned round
    calls: Counter[str] = field(default_factory=Counter)

    def drawn(self, what: str) -> bool:
        self.calls[what] += 1
        return seeded_judges.seeded_chance("seed", what, self.calls[what]) < getattr(self, what)

    def reply(self, heard: world.AgentMessage) -> dict:
        assert heard.variables["tenant"] == TENANT
        helps = not self.drawn("agent") and "kindly" in heard.text
        return world.message("I have helped you." if helps else "I cannot say.", workflows=[], trace={})

    def model(self, asked: world.ModelRequest) -> str:
        if not asked.wants_json:
            return "Where on earth is it?" if self.drawn("user") else "Where is my order, kindly?"
        helps = "I have helped you." in asked.text
        return fakes.judge_answer("pass" if helps is not self.drawn("judge") else "fail")


def refuses(settings, message: str, **options) -> str:
    with pytest.raises(UsageError, match=message) as refused:
        measure_noise(replace(settings, **options), RunContext())
    return str(refused.value)


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("played")
    (root / "prices.yaml").write_text(PRICES)
    with served_by(FaultyServers()) as env:
        ran = ci_evals("run", write_suite(root, *TESTS), "--quiet", *MODELS, cwd=root, env=env)
    assert ran.returncode == 0, ran.stderr
    return root


@pytest.fixture
def run(finished_run, tmp_path) -> Path:
    shutil.copytree(finished_run, tmp_path, dirs_exist_ok=True)
    return tmp_path


class served_by:  # noqa: N801  # read as a function
    """The servers; gives the environment that leads to them."""

    def __init__(self, chance: FaultyServers) -> None:
        self._agent, self._llm = world.agent(chance.reply), world.llm(chance.model)

    def __enter__(self) -> dict[str, str]:
        agent = self._agent.__enter__()
        own = {"CI_EVALS_BASE_URL": agent.url, "AGENT_KEY": agent.key, "TENANT": TENANT}
        return own | self._llm.__enter__().env

    def __exit__(self, *args: object) -> None:
        self._llm.__exit__(*args)
        self._agent.__exit__(*args)


@pytest.mark.parametrize(("alone", "best"), [("agent", "loops"), ("user", "loops"), ("judge", "votes")])
def test_noise_and_advice_are_attributed_to_the_only_noisy_source(run, alone, best):
    before = read_results(run)
    with served_by(FaultyServers(**{alone: 0.5})) as env:
        completed = ci_evals("noise", "results", "--plays=4", "--prices=prices.yaml", cwd=run, env=env)
    assert completed.returncode == 0, completed.stderr
    after = read_results(run)
    result = after["studies"]["noise"]
    parts = {part["source"]: part for part in result["parts"]}
    assert parts[alone]["share"]["value"] > 0.8
    assert sum(part["share"]["value"] for part in parts.values()) == pytest.approx(1)
    for source, part in parts.items():  # a trial scores 0 or 100, either half of the time
        truth, seen = 2500 if source == alone else 0, part["variance"]
        assert seen["low"] is None or seen["low"] <= truth <= seen["high"]
    assert (result["best"], result["gainsPer"], result["tests"]) == (best, "dollar", 8)
    assert (result["plays"], result["judgments"], result["leftOut"]) == (64, 32, 0)
    assert result["judge"]["models"] == ["judge-1"]
    calls = 32 * 2 + 32 + 32  # user and judge anew, judge with words held, judge again
    assert f"64 conversations played, 32 judged again, {calls} calls of models" in completed.stderr
    assert "Judging 32 conversations again" in completed.stderr
    assert f"the next dollar belongs in {BEST[best]}. " in completed.stdout
    assert {**after, "studies": None} == {**before, "studies": None}
    texts = [path.read_text() for path in (run / "results").rglob("*.*") if path.is_file()]
    output = "".join([completed.stdout, completed.stderr, *texts])
    assert not any(secret in output for secret in (TENANT, world.AGENT_KEY))


def test_all_noise_is_attributed_to_agent_if_run_uses_no_model(tmp_path):
    with DemoServer(noise=0.3, seed=2) as agent:
        env = {"CI_EVALS_BASE_URL": agent.base_url, "CI_EVALS_AGENT_KEY": "key-12345678"}
        played = ("run", "demo:retail", "--provider=offline", "--no-gate", "--quiet")
        for args in (played, ("noise", "results")):
            completed = ci_evals(*args, cwd=tmp_path, env=env)
            assert completed.returncode == 0, completed.stderr
    result = read_results(tmp_path)["studies"]["noise"]
    agent, *others = result["parts"]
    assert agent["share"] == {"value": 1, "low": 1, "high": 1, "count": result["tests"]}
    assert all(part["variance"]["high"] == 0 for part in others)
    assert agent["variance"]["low"] > 0
    values = [result[name] for name in ("judge", "judgments", "best", "gainsPer")]
    assert values == [None, 0, "loops", "call"]
    assert "There was no judge" in completed.stdout
    assert "with the same user messages, 0 to judge again" in completed.stderr


def test_interrupted_study_ends_and_saves_nothing(run):
    before = read_files(run)
    chance = FaultyServers()

    def slow(asked):
        time.sleep(60 if chance.calls["user"] > 5 else 0)
        return chance.model(asked)

    with world.agent(chance.reply) as agent, world.llm(slow) as llm:
        env = {"CI_EVALS_BASE_URL": agent.url, "AGENT_KEY": agent.key, "TENANT": TENANT} | llm.env
        process = start("noise", "results", "--quiet", cwd=run, env=env)
        deadline = time.monotonic() + 300
        while chance.calls["user"] <= 5 and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=300)
    assert process.returncode == 130, err
    assert "Interrupted: nothing is saved. " in err
    assert "conversations played, 0 judged again" in err
    assert read_files(run) == before


def test_refused_agent_key_stops_study_and_saves_nothing(run):
    before = read_files(run)
    with served_by(FaultyServers()) as env:
        env |= {"AGENT_KEY": "another-key-1234"}
        completed = ci_evals("noise", "results", "--quiet", cwd=run, env=env)
    assert completed.returncode == 3, completed.stderr
    assert "Stopped: " in completed.stderr
    assert "Nothing is saved" in completed.stderr
    assert read_files(run) == before


def replace_results(run: Path, **fields) -> None:
    path = run / "results/_results.json"
    results = replace(dataclass_json.from_json(Results, path.read_text()), **fields)
    path.write_text(dataclass_json.to_json(results))


def read(run: Path) -> Results:
    return dataclass_json.from_json(Results, (run / "results/_results.json").read_text())


def with_trials(results: Results, **fields) -> tuple:
    def changed(test: TestResult) -> TestResult:
        return replace(test, trials=tuple(replace(trial, **fields) for trial in test.trials))

    return tuple(replace(suite, tests=tuple(map(changed, suite.tests))) for suite in results.suites)


@pytest.fixture
def settings_here(run, monkeypatch):
    """Asks in this process, where nobody answers."""
    monkeypatch.chdir(run)
    for name in ("GITHUB_ACTIONS", "GITHUB_EVENT_NAME", "OPENAI_API_KEY", "LLM_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AGENT_KEY", world.AGENT_KEY)
    monkeypatch.setenv("TENANT", TENANT)
    url = read(run).run.config["baseUrl"]
    return NoiseSettings(results=Path("results"), llm_key="key-12345678", base_url=url)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"results": Path("nowhere")}, "nowhere: cannot be read"),
        ({"llm_key": None}, "no key for the LLM"),
        ({"base_url": None}, "the run was played with --base-url=http.*name the agent here too"),
        ({"suites": ["elsewhere.json"]}, "No file 'elsewhere.json'"),
        ({"suites": ["demo:hr"]}, "the test 'Test 0' of 'Stub' no longer exists"),
        ({"max_cost": 0.0001}, "estimated cost: .0.0..., and a part of it says nothing"),
        ({"max_cost": 9.0, "user_model": "user-9"}, "no price for user-9"),
        ({"judge_votes": 2}, "use an odd one"),
        ({"agent_headers": "nonsense"}, "`agent_headers=`: a line is not of the form"),
    ],
)
def test_unusable_options_are_refused_before_any_request(run, settings_here, options, message):
    before = read_files(run)
    refuses(settings_here, message, prices=Path("prices.yaml"), **options)
    assert read_files(run) == before


def test_estimated_cost_ignores_the_cache_of_the_run(run, settings_here):
    limited = {"prices": Path("prices.yaml"), "max_cost": 0.0001}
    error, usage = refuses(settings_here, "a part of it says nothing", **limited), read(run).usage
    cached = [
        replace(one, cached=one.calls - 1, cost_usd=one.cost_usd / one.calls) if one.role == "judge" else one
        for one in usage.by_role
    ]
    replace_results(run, usage=replace(usage, by_role=tuple(cached)))
    assert refuses(settings_here, "a part of it says nothing", **limited) == error


def test_noise_of_changed_missing_or_untrusted_suite_is_refused(run, settings_here, monkeypatch):
    write_suite(run, *TESTS[:3], TESTS[3] | {"guidelines": "You shout."}, *TESTS[4:])
    message = "the test 'Test 3' of 'Stub' has changed since the run"
    assert "Test 4" not in refuses(settings_here, message)
    write_suite(run, *TESTS)
    with monkeypatch.context() as event:
        event.setenv("GITHUB_EVENT_NAME", "pull_request_target")
        text = "a suite may not read the environment in the event pull_request_target"
        refuses(settings_here, text)
    (run / "suite.json").unlink()
    refuses(settings_here, r"suite\.json: the run's suite is gone")


def test_noise_of_replayed_run_or_run_without_conversations_is_refused(run, settings_here):
    path = run / "results/_results.json"
    text = path.read_text()
    data = json.loads(text)
    data["run"]["origin"] = {"how": "replay", "run": "r" * 32, "startedAt": "2026-11-21T09:30:00Z"}
    path.write_text(json.dumps(data))
    refuses(settings_here, "were played from a recording; name the results of the run that held")
    path.write_text(text)
    replace_results(run, suites=with_trials(read(run), turns=()))
    refuses(settings_here, "none of its tests has a scored conversation that can be rerun")


@pytest.fixture
def serving_here(settings_here, monkeypatch):
    """Serves in this process; gives the settings that lead there, and counts what is asked."""
    chance = FaultyServers()
    with world.agent(chance.reply) as agent, world.llm(chance.model) as llm:
        for name, value in (llm.env | {"AGENT_KEY": agent.key}).items():
            monkeypatch.setenv(name, value)
        models = {"llm_key": None, "prices": Path("prices.yaml"), "parallel": 4}
        settings = replace(settings_here, base_url=agent.url, **models)
        yield settings, llm


async def test_each_model_of_a_panel_judges_equally_often(run, serving_here):
    settings, llm = serving_here
    study = prepare(replace(settings, judge_panel="k,l,m", tests=2), RunContext())
    expected, heard = [], []

    def judging(count):
        expected.append(count)
        return heard.append

    result = await measure(study, judging=judging)
    assert (expected, sum(isinstance(event, TrialFinished) for event in heard)) == ([6], 6)
    judged = Counter(asked.model for asked in llm.asked if asked.wants_json)
    assert judged == dict.fromkeys("klm", 2 * 3)
    assert (result.noise.judge.models, result.noise.judge.votes) == (("k", "l", "m"), 3)
    assert (result.noise.tests, result.plays, result.judgments) == (2, 12, 6)
    assert result.noise.best is None  # nothing went wrong


async def test_tests_without_verdict_are_left_out_and_counted(run, serving_here):
    settings, llm = serving_here
    answer = llm.answer
    llm.answer = lambda asked: "Hm." if asked.wants_json and "order 3" in asked.text else answer(asked)
    result = await measure(prepare(replace(settings, plays=2), RunContext()))
    assert (result.noise.tests, result.noise.tests_left_out, result.noise.left_out) == (7, 1, 3 * 2)


async def test_max_cost_ends_study_without_result(run, serving_here):
    settings, _ = serving_here
    (run / "prices.yaml").write_text(PRICES.replace(": 1", ": 10000"))
    study = prepare(replace(settings, max_cost=5.0), RunContext())
    stop = Stop()
    result = await measure(study, stop=stop)
    assert ("of $5 spent" in stop.reason, result.noise) == (True, None)
    assert (0 < result.plays < 48, 0 < result.usage.cost_usd < 6) == (True, True)


def test_moved_suite_is_read_from_its_new_path(run, settings_here):
    (run / "elsewhere").mkdir()
    (run / "suite.json").rename(run / "elsewhere/moved.json")
    study = prepare(replace(settings_here, suites=["elsewhere"], tests=3), RunContext())
    assert [one.planned.file for one in study.sample] == ["elsewhere/moved.json"] * 3
