"""Prompts that providers cache: judged criteria of one conversation begin alike, and the first one warms.

The server keeps prompts as the real ones say they do: from 1,024 tokens on, here of four characters each.
"""

import json
from bisect import bisect_left
from dataclasses import dataclass, field

import fakes
import pytest
import world
from commands import ci_evals, read_results

from ci_evals.adapters.suites import bundled_path
from ci_evals.domain.prices import Price

pytestmark = pytest.mark.slow

PASS = fakes.judge_answer("pass", "Yes.")
ANSWER = (
    "Yes, please. I would like to have that settled today if there is any way to do it, since I am away from "
    "tomorrow on and nobody else here knows of it. What else do you need from me, and when will I hear of it?"
)
"""A message as long as those that models write for a user."""
PER_TOKEN, LEAST, STEP = 4, 1_024, 128
CRITERIA = (
    "Is polite", "Stays on the subject", "Names the next step", "Invents nothing", "Answers in English",
)  # fmt: skip


@dataclass
class PromptCache:
    """The cache of a provider, and the counts that it reports of each prompt."""

    models: world.Models
    kept: list[str] = field(default_factory=list)

    def openai(self, number: int, counts: dict[str, int]) -> dict:
        asked = self.models.asked[number - 1]
        text = asked.system + asked.text
        shared = max((_alike(text, other) for other in self.kept), default=0)
        cached = shared // PER_TOKEN // STEP * STEP
        self.kept.append(text)
        return counts | {
            "prompt_tokens": len(text) // PER_TOKEN,
            "prompt_tokens_details": {"cached_tokens": cached if cached >= LEAST else 0},
        }

    def anthropic(self, number: int, counts: dict[str, int]) -> dict:
        asked = self.models.asked[number - 1]
        content = asked.body["messages"][0]["content"]
        marked = asked.system + content[0]["text"] if isinstance(content, list) else ""
        whole, start = len(asked.system + asked.text) // PER_TOKEN, len(marked) // PER_TOKEN
        if start < LEAST:
            return counts | {"input_tokens": whole}
        read = start if marked in self.kept else 0
        self.kept.append(marked)
        return counts | {
            "input_tokens": whole - start,
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": start - read,
        }


def _alike(one: str, other: str) -> int:
    lengths = range(1, min(len(one), len(other)) + 1)
    return bisect_left(lengths, x=True, key=lambda length: one[:length] != other[:length])


def judge_usage(folder, provider: str, criteria=CRITERIA, *options: str) -> dict:
    """The judge's usage in a run of `demo:hr` with these criteria in each test."""
    suite = json.loads((bundled_path("demo") / "hr.json").read_text())
    del suite["tests"][5:]
    for test in suite["tests"]:
        test["evaluations"] = [{"criterion": criterion} for criterion in criteria]
    (folder / "suite.json").write_text(json.dumps(suite))
    with world.llm(lambda asked: PASS if asked.wants_json else ANSWER) as models:
        models.usage = getattr(PromptCache(models), provider)
        more = ("--judge-check=off", "--min-score=0", "--max-errors=1", "--parallel=4", *options)
        ran = ci_evals("run", "suite.json", f"--provider={provider}", *more, cwd=folder, env=models.env)
    assert ran.returncode in {0, 1}, ran.stdout + ran.stderr
    (judge,) = [role for role in read_results(folder)["usage"]["byRole"] if role["role"] == "judge"]
    return judge


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_most_judge_tokens_are_read_from_provider_cache_at_their_own_price(tmp_path, provider):
    """At least 60 % with five criteria a test; the run's cost is that of the tokens at their prices."""
    price = {"input": 10, "output": 50, "cachedInput": 1, "cacheWrite": 12.5}
    (tmp_path / "prices.json").write_text(json.dumps({"models": {"some-judge": price, "some-user": price}}))
    options = ("--prices=prices.json", "--judge-model=some-judge", "--user-model=some-user")
    judge = judge_usage(tmp_path, provider, CRITERIA, *options)
    assert judge["calls"] >= 5 * 5
    assert judge["cachedInputTokens"] >= 0.6 * judge["inputTokens"]
    read, kept, written = (judge[key] for key in ("inputTokens", "cachedInputTokens", "cacheWriteTokens"))
    cost = (read - kept - written) * 10 + kept * 1 + written * 12.5 + judge["outputTokens"] * 50
    assert judge["costUsd"] == pytest.approx(cost / 1e6)


def test_repeated_votes_use_provider_cache(tmp_path):
    """Their order of evidence varies, each with a beginning of its own."""
    judge = judge_usage(tmp_path, "openai", CRITERIA, "--judge-votes=3")
    assert judge["cachedInputTokens"] >= 0.5 * judge["inputTokens"]


def test_single_question_is_not_marked_for_caching(tmp_path):
    """Keeping costs more than reading."""
    judge = judge_usage(tmp_path, "anthropic", CRITERIA[:1])
    assert judge["cachedInputTokens"] == judge["cacheWriteTokens"] == 0


def test_cached_tokens_without_cache_price_are_charged_at_input_price():
    """Rather too high than too low."""
    assert Price(input=10, output=50).cost(100, 0, cached=60, written=20) == pytest.approx(100 * 10 / 1e6)
    kept = Price(input=10, output=50, cached_input=1, cache_write=12.5)
    assert kept.cost(100, 0, cached=60, written=20) == pytest.approx((20 * 10 + 60 + 20 * 12.5) / 1e6)
