"""`mutate --judge` asks about faults that no strict check notices, within `--max-cost`."""

import asyncio
import copy
import json
import re
from pathlib import Path

import fakes
import pytest
import shop_agents
import world
import yaml
from seeded_judges import prompt_block
from shop_agents import SUITE, ShopAgent

from ci_evals import UsageError, load_suite, run_suite, write_reports
from ci_evals.cli.app import invoke
from ci_evals.cli.run_context import RunContext
from ci_evals.domain.null_agents import CLAIM
from ci_evals.runner import Participants

AMOUNT = {"criterion": "Says that 30 euros are paid back"}
CLAIMS = {"criterion": "Does what it says", "claims": "backed"}
PRICES = {"models": {"judge-1": {"input": 1, "output": 1}}}
OPTIONS = ("--provider=openai", "--judge-model=judge-1", "--judge-cache=off", "--quiet")


def answer(asked) -> str:
    """A judge that looks for the amount, and for the claim of a refund with its call."""
    turns = prompt_block(asked.text, "conversation")[:-1]
    if "<calls>" not in asked.text:
        met = any("30 euros" in turn["agent"] for turn in turns)
        return fakes.judge_answer("pass" if met else "fail", "So it is.", looked_at=range(1, len(turns) + 1))
    refunds = [call["call"] for call in prompt_block(asked.text, "calls") if call["name"] == "refund"]
    listed = []
    for turn in turns:
        claims = []
        if "I have refunded" in turn["agent"]:
            call = refunds[0] if refunds else 0
            claims = [{"quote": "I have refunded", "about": "", "call": call, "backed": bool(call)}]
        if CLAIM in turn["agent"]:
            claims = [{"quote": CLAIM, "about": "", "call": 0, "backed": False}]
        listed.append({"turn": turn["turn"], "claims": claims})
    return json.dumps({"reasoning": "It claims a refund, or not.", "turns": listed})


@pytest.fixture
def models(monkeypatch):
    with world.llm(answer) as served:
        monkeypatch.setenv("OPENAI_BASE_URL", served.openai_url)
        yield served


@pytest.fixture
def save_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    shop_agents.open_shop()

    def play(*evaluations):
        suite = copy.deepcopy(SUITE)
        suite["tests"][0]["evaluations"] = [*evaluations]  # the refund has no other checks than these
        Path("shop.yaml").write_text(yaml.safe_dump(suite, sort_keys=False))
        Path("prices.yaml").write_text(yaml.safe_dump(PRICES))
        players = Participants(ShopAgent(), judge_llm=fakes.ScriptedLLM(answer))
        results = asyncio.run(run_suite(players, load_suite("shop.yaml"), judge_check="off"))
        assert results.gate.passed
        write_reports(results, "results")

    return play


def mutate(models, *options, env=None):
    """The exit code, the faults by kind, and all that was found."""
    context = RunContext(models.env if env is None else env)
    try:
        code = invoke(["mutate", "results", *OPTIONS, *options], context)
    except SystemExit as end:
        code = end.code
    finally:
        context.close()
    result = json.loads(Path("results/_mutations.json").read_text())
    return code or 0, {fault["kind"]: fault for fault in result["faults"]}, result


def test_judge_is_asked_only_with_its_option_and_notices_more(models, save_run, capsys):
    """One criterion notices a wrong amount; claims notice a call that was not made or failed."""
    save_run(AMOUNT, CLAIMS)
    code, before, result = mutate(models)
    assert (code, models.asked, result["judge"], before["fact_changed"]["notAsked"]) == (0, [], None, 1)
    _, after, result = mutate(models, "--judge")
    noticed = {kind for kind in after if after[kind]["noticed"] > before[kind]["noticed"]}
    assert noticed >= {"fact_changed", "call_dropped", "call_failed", "reply_claims", "reply_refused"}
    assert after["fact_changed"]["notAsked"] == result["judge"]["notAsked"] == 0
    assert result["judge"]["asked"] == len(models.asked) > 0
    note = f"The judge was asked {len(models.asked)} questions about faults that no strict check notices."
    assert note in capsys.readouterr().out
    assert note in Path("results/mutations.md").read_text()


def test_judge_is_not_asked_about_invisible_or_noticed_faults_or_auto_turns(models, save_run):
    save_run(AMOUNT)
    _, faults, _ = mutate(models, "--judge", "--faults=rule_dropped")
    assert models.asked == []
    assert (faults["rule_dropped"]["noticed"], faults["rule_dropped"]["notAsked"]) == (0, 0)
    save_run(AMOUNT, {"criterion": "amount", "strict": "contains", "text": "30 euros", "turn": 1})
    _, faults, _ = mutate(models, "--judge", "--faults=fact_changed")
    assert (models.asked, faults["fact_changed"]["noticed"]) == ([], 1)
    save_run(AMOUNT)
    suite = yaml.safe_load(Path("shop.yaml").read_text())
    suite["tests"][0]["turns"][1] = {"user": "auto"}
    Path("shop.yaml").write_text(yaml.safe_dump(suite))
    results = json.loads(Path("results/_results.json").read_text())
    results["suites"][0]["tests"][0]["turns"][1]["user"] = "auto"
    Path("results/_results.json").write_text(json.dumps(results))
    _, faults, _ = mutate(models, "--judge", "--faults=fact_changed")
    assert (models.asked, faults["fact_changed"]["notAsked"]) == ([], 1)


def test_judge_notices_only_faults_that_break_its_criterion(models, save_run):
    save_run(CLAIMS)
    _, faults, result = mutate(models, "--judge", "--faults=reply_refused,reply_claims")
    (test,) = [test for test in result["tests"] if test["name"] == "Refund"]
    assert test["unnoticed"] == ["reply_refused"]
    assert faults["reply_claims"]["noticed"] > faults["reply_refused"]["noticed"]


def test_judge_cache_answers_a_repeated_mutation_without_model_calls(models, save_run):
    save_run(AMOUNT, CLAIMS)
    _, first, _ = mutate(models, "--judge", "--judge-cache=kept")
    asked = len(models.asked)
    _, second, _ = mutate(models, "--judge", "--judge-cache=kept")
    assert (len(models.asked), second) == (asked, first)


def test_max_cost_leaves_further_questions_unasked(models, save_run, capsys):
    """The first question tells what one costs; each has a price here of far more than half of the limit."""
    save_run(AMOUNT, CLAIMS)
    models.usage = lambda _, __: {"prompt_tokens": 60_000, "completion_tokens": 1}
    _, faults, result = mutate(models, "--judge", "--prices=prices.yaml", "--max-cost=0.1", "--parallel=4")
    assert (len(models.asked), result["judge"]["asked"]) == (1, 1)
    assert result["judge"]["costUsd"] == pytest.approx(0.06, rel=0.01)
    assert result["judge"]["notAsked"] > 3
    assert sum(fault["notAsked"] for fault in faults.values()) > 3
    assert "did not fit into --max-cost: not asked." in capsys.readouterr().out
    models.asked.clear()
    _, _, result = mutate(models, "--judge", "--prices=prices.yaml", "--max-cost=0")
    assert (models.asked, result["judge"]["asked"]) == ([], 0)


def test_unusable_judge_is_refused_before_anything_is_written(models, save_run):
    save_run(AMOUNT, CLAIMS)
    for options, message in (
        (("--max-cost=1",), "`max_cost=` limits what the judge may cost. Add `judge=`."),
        (("--judge", "--max-cost=1"), "no price for judge-1"),
        (("--judge", "--provider=offline"), "there is no judge"),
    ):
        with pytest.raises(UsageError, match=re.escape(message)):
            mutate(models, *options)
    with pytest.raises(UsageError):
        mutate(models, "--judge", env={})
    with pytest.raises(FileNotFoundError):  # it was asked in vain: no file is written
        mutate(models, "--judge", env=models.env | {"LLM_API_KEY": "another-key"})
    assert models.asked == []
    assert not Path("results/_mutations.json").exists()
