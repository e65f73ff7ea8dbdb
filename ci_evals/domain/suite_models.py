"""The models that a suite is run with."""

from dataclasses import dataclass

from ci_evals.support.digest import jury


@dataclass(frozen=True)
class SuiteModels:
    """The names of the models behind judge, simulated user, auditor and comparisons of meaning."""

    judges: tuple[str, ...] = ()
    """They vote in turn; empty if nothing is judged."""
    votes: int = 1
    """The most votes on one criterion."""
    user: str | None = None
    """None if the user is scripted."""
    embedder: str | None = None
    auditor: str | None = None
    """Checks whether the simulated user kept to its role."""

    @property
    def judge(self) -> str | None:
        """The judge, or the first of a panel."""
        return next(iter(self.judges), None)

    @property
    def panel(self) -> tuple[str, ...]:
        """The judges if there are several."""
        return self.judges if len(self.judges) > 1 else ()

    @property
    def identity(self) -> tuple[object, str | None, str | None]:
        """The parts that a digest of models is made of."""
        return jury(self.judge, self.panel, self.votes), self.user, self.embedder
