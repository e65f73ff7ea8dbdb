"""Results of tau2-bench (github.com/sierra-research/tau2-bench): `results.json`.

Read from what `tau2/data_model/simulation.py` at a2c0247 (version 1.0.1) writes, as one file or beside a
folder of simulations. The package `tau2` on PyPI is another project. pass^k is `metrics/agent_metrics.py`:
simulations that broke for reasons of infrastructure are left out, and k goes up to the least number of trials
of a task.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ci_evals.domain.results.suite import OfficialScore
from ci_evals.extension_support.result_files import fields
from ci_evals.extension_support.result_files.reader import Reader
from ci_evals.extension_support.result_files.result_rows import ResultSet, Row, Undecided
from ci_evals.extension_support.result_files.source import SourceFile
from ci_evals.extensions.benchmarks.pass_at_k import every_time, mean
from ci_evals.support.digest import digest

_RULE = "pass^k estimates how often all of k trials pass; infrastructure errors are left out."
_FULL = 1e-6
_MOST_K = 100
_ENDED = {"user_stop", "agent_stop"}
"""How a simulation ends that was played to its end; tau2 gives every other one no reward."""


def read(file: SourceFile) -> Sequence[ResultSet] | None:
    """Read the simulations of one run."""
    results = file.json()
    info = results.get("info") if isinstance(results, dict) else None
    if not isinstance(info, dict) or "environment_info" not in info or "tasks" not in results:
        return None
    simulations = fields.tables(
        results.get("simulations") or results.get("simulation_index") or [], "simulations"
    )
    tasks = {
        fields.name(task["id"], "the id of a task"): digest(task)
        for task in fields.tables(results["tasks"], "tasks")
    }
    rows = [_row(simulation, tasks) for simulation in simulations]
    environment = fields.table(info["environment_info"], "info.environment_info")
    agent = fields.table(info["agent_info"], "info.agent_info")
    user = info.get("user_info")
    return [
        ResultSet(
            suite=fields.name(environment["domain_name"], "info.environment_info.domain_name"),
            arm=fields.name(agent.get("llm") or agent.get("implementation"), "info.agent_info.llm"),
            rows=rows,
            fingerprint={
                "version of tau2-bench (its git commit)": str(info.get("git_commit"))[:100],
                "policy": digest(environment.get("policy")),
                "simulated user": digest(
                    [user.get(key) for key in ("implementation", "llm")] if isinstance(user, dict) else None
                ),
            },
            official=official(rows),
            contradictions=tuple(_contradictions(info, tasks, rows)),
            run_ids=(digest(ids),) if (ids := _ids(simulations)) else (),
        )
    ]


def _ids(simulations: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the ids of the simulations, which tau2 draws; empty if one has none."""
    ids = sorted(fields.words(simulation.get("id")) for simulation in simulations)
    return ids if ids and all(ids) else []


def _contradictions(info: Mapping[str, Any], tasks: Mapping[str, str], rows: Sequence[Row]) -> Iterator[str]:
    """Yield which trials are missing or of no task."""
    found = Counter(row.test for row in rows)
    if unknown := [task for task in found if task not in tasks]:
        yield f"simulations are of {len(unknown):,} tasks that tasks lacks, such as {unknown[0][:100]!r}."
    trials = fields.count(info.get("num_trials"))
    if trials is None:
        trials = max(found.values(), default=0)
    wrong = [task for task in tasks if found[task] != trials]
    if wrong:
        yield (
            f"info.num_trials is {trials:,}, and task {wrong[0][:100]!r} has {found[wrong[0]]:,} "
            f"simulations; {len(wrong):,} of {len(tasks):,} tasks do not have as many as planned."
        )


def official(rows: Sequence[Row]) -> OfficialScore:
    """Return pass^1 and every further pass^k."""
    counts: dict[str, list[int]] = {}
    for row in rows:
        if row.undecided is not Undecided.INFRASTRUCTURE:
            trials = counts.setdefault(row.test, [0, 0])
            trials[0] += 1
            trials[1] += row.passed is True
    most = min((total for total, _ in counts.values()), default=0)
    found = {
        k: mean(every_time(total, passed, k) for _, (total, passed) in sorted(counts.items()))
        for k in range(1, min(most, _MOST_K) + 1)
    }
    return OfficialScore(
        name="pass^1", value=found.get(1), pass_at_k=found or None, of=len(counts), rule=_RULE
    )


READER = Reader(
    "tau2",
    "tau2-bench results",
    read,
    official,
    files="`results.json`",
    tried_with="tau2-bench at a2c0247",
    compared="the tasks, and `num_trials` of each",
)


def _row(simulation: Mapping[str, Any], tasks: Mapping[str, str]) -> Row:
    task = fields.name(simulation["task_id"], "task_id")
    ended = fields.name(simulation.get("termination_reason"), "termination_reason")
    costs = [
        cost
        for key in ("agent_cost", "user_cost")
        if (cost := fields.amount(simulation.get(key))) is not None
    ]
    row = Row(
        test=task,
        trial=fields.count(simulation.get("trial")),
        definition=tasks.get(task),
        conversation=fields.conversation(simulation.get("messages")),
        cost_usd=sum(costs) if costs else None,
        seconds=fields.amount(simulation.get("duration")),
    )
    words = ended.replace("_", " ")
    if ended == "infrastructure_error":
        return row._replace(undecided=fields.INFRASTRUCTURE, reason=words)
    info = simulation.get("reward_info")
    reward = simulation.get("reward") if info is None else fields.table(info, "reward_info").get("reward")
    if reward is None:
        return row._replace(undecided=fields.EMPTY, reason=f"{words}, without a reward")
    if fields.is_nan(reward):
        return row._replace(undecided=fields.ERROR, reason=f"{words}, with a reward that is NaN")
    passed = abs(_reward(reward) - 1) <= _FULL
    if passed and ended not in _ENDED:
        return row._replace(undecided=fields.ERROR, reason=f"{words}, with a full reward")
    return row._replace(
        passed=passed,
        score=min(1.0, _reward(reward)),
        reason="" if passed else _reason(info, words),
    )


def _reward(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1 + _FULL:
        raise ValueError(f"a reward is {fields.shown(value)}, and no number from 0 to 1")
    return float(value)


def _reason(info: Any, ended: str) -> str:
    """Return which part of the reward was missed, and how the simulation ended."""
    parts = info.get("reward_breakdown") if isinstance(info, dict) else None
    missed = (
        [f"{key} {value:g}" for key, value in parts.items() if isinstance(value, float) and value < 1]
        if isinstance(parts, dict)
        else []
    )
    database = info.get("db_check") if isinstance(info, dict) else None
    if isinstance(database, dict) and database.get("db_match") is False:
        missed.append("the database does not have the expected state")
    return "; ".join([*missed, ended])
