"""From the runs of a branch to the false alarms of gates."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ci_evals.cli.terminal.display import WorkProgress
from ci_evals.domain.results.gate import CheckKind
from ci_evals.domain.results.run import Results
from ci_evals.extensions.backtest.binomial import exact_interval, sign_test
from ci_evals.extensions.backtest.figures import (
    Alarms,
    Backtest,
    CheckAlarms,
    GateAlarms,
    LeftOutRun,
    PairResult,
    PullRequestResult,
    PullRequests,
    SettingResult,
    ShareInterval,
)
from ci_evals.extensions.backtest.gates import Gate, Prediction, Predictor, Verdict, mean_of, verdict_of
from ci_evals.extensions.backtest.pairing import Compared, History, against_branch, pairs_of


@dataclass(frozen=True)
class _Decided:
    """The verdicts of one gate."""

    pairs: Sequence[Verdict]
    predictions: Sequence[Prediction | None]
    pull_requests: Sequence[Verdict]


@dataclass
class BacktestStudy:
    """Stored runs and the gates that decide them."""

    history: History
    gate: Gate
    """The options that stand instead of the runs' own."""
    gates: Mapping[str, Gate]
    """The gates to compare with it."""
    progress: WorkProgress = field(default_factory=WorkProgress)
    pairs: list[Compared] = field(init=False)
    _predictor: Predictor = field(default_factory=Predictor)

    def __post_init__(self) -> None:
        self.pairs = pairs_of(self.history.runs)

    def findings(self, left_out: Iterable[LeftOutRun] = ()) -> Backtest:
        """Decide all pairs by all gates. `left_out` are files that no run was read from."""
        branch, runs = self.history.branch, self.history.runs
        pull_requests = [against_branch(run, runs) for run in self.history.pull_requests]
        self.progress.begun((1 + len(self.gates)) * (len(self.pairs) + len(pull_requests)))
        own = self._decided(self.gate, pull_requests)
        others = {
            name: self._decided(self.gate.changed(one), pull_requests) for name, one in self.gates.items()
        }
        same = [pair.same_commit for pair in self.pairs]
        alarms = _alarms_of(own)
        return Backtest(
            branch=branch,
            runs=len(runs),
            pairs=len(self.pairs),
            false_alarms=alarms.false_alarms,
            no_verdict=alarms.no_verdict,
            predicted=alarms.predicted,
            predicted_at_most=alarms.predicted_at_most,
            checks=alarms.checks,
            same_commit=_alarms([one for one, is_same in zip(own.pairs, same, strict=True) if is_same]),
            other_commit=_alarms([one for one, is_same in zip(own.pairs, same, strict=True) if not is_same]),
            options=self.gate.as_json(),
            settings=tuple(
                _setting(name, self.gates[name], decided, own) for name, decided in others.items()
            ),
            pull_requests=tuple(map(_pull_request, self.history.pull_requests, own.pull_requests)),
            pair_results=tuple(map(_pair_result, self.pairs, own.pairs)),
            left_out=(*left_out, *self.history.left_out),
        )

    def _decided(self, gate: Gate, pull_requests: Sequence[Compared]) -> _Decided:
        return _Decided(
            pairs=list(self._verdicts(self.pairs, gate)),
            predictions=[
                self._predictor.prediction(pair.base, gate.policy(pair.head)) for pair in self.pairs
            ],
            pull_requests=list(self._verdicts(pull_requests, gate)),
        )

    def _verdicts(self, compared: Iterable[Compared], gate: Gate) -> Iterator[Verdict]:
        for one in compared:
            yield verdict_of(one, gate)
            self.progress.done()


def _alarms(verdicts: Sequence[Verdict]) -> Alarms:
    decided = [one for one in verdicts if one.failed is not None]
    count = sum(one.failed is True for one in decided)
    if not decided:
        return Alarms(count=0, of=0, interval=None)
    low, high = exact_interval(count, len(decided))
    return Alarms(count=count, of=len(decided), interval=ShareInterval(low=low, high=high))


def _alarms_of(decided: _Decided) -> GateAlarms:
    predictions = [one for one in decided.predictions if one]
    return GateAlarms(
        false_alarms=_alarms(decided.pairs),
        no_verdict=sum(one.failed is None for one in decided.pairs),
        predicted=mean_of(one.share for one in predictions),
        predicted_at_most=mean_of(one.at_most for one in predictions),
        checks=tuple(_checks(decided.pairs, predictions)),
    )


def _checks(verdicts: Sequence[Verdict], predictions: Sequence[Prediction]) -> Iterator[CheckAlarms]:
    """Yield the alarms by kind of check, for the kinds that failed or are predicted to."""
    for kind in CheckKind:
        count = sum(kind in one.kinds for one in verdicts)
        known = any(kind in one.kinds for one in predictions)
        predicted = mean_of(one.kinds.get(kind, 0.0) for one in predictions) if known else None
        if count or known:
            yield CheckAlarms(kind=kind, count=count, predicted=predicted)


def _setting(name: str, gate: Gate, decided: _Decided, own: _Decided) -> SettingResult:
    both = [
        (mine.failed, before.failed)
        for mine, before in zip(decided.pairs, own.pairs, strict=True)
        if None not in {mine.failed, before.failed}
    ]
    more = sum(mine is True and before is False for mine, before in both)
    fewer = sum(mine is False and before is True for mine, before in both)
    verdicts = [one.failed for one in decided.pull_requests if one.failed is not None]
    alarms = _alarms_of(decided)
    return SettingResult(
        name=name,
        options=gate.as_json(),
        false_alarms=alarms.false_alarms,
        no_verdict=alarms.no_verdict,
        predicted=alarms.predicted,
        predicted_at_most=alarms.predicted_at_most,
        checks=alarms.checks,
        only_here=more,
        only_before=fewer,
        p=sign_test(fewer, more),
        pull_requests=PullRequests(failed=sum(verdicts), of=len(verdicts)),
    )


def _pair_result(pair: Compared, verdict: Verdict) -> PairResult:
    return PairResult(
        run=pair.head.run.id,
        base=pair.base.run.id,
        at=pair.head.run.started_at,
        commit=pair.head.run.git.commit,
        base_commit=pair.base.run.git.commit,
        same_commit=pair.same_commit,
        failed=verdict.failed,
        checks=verdict.checks,
    )


def _pull_request(run: Results, verdict: Verdict) -> PullRequestResult:
    git = run.run.git
    return PullRequestResult(
        run=run.run.id,
        commit=git.head_commit or git.commit,
        pull_request=git.pull_request or 0,
        failed=verdict.failed,
    )
