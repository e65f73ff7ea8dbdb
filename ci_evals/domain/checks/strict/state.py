"""Checks of the state of the world after the conversation."""

from typing import Literal

from pydantic import Field, JsonValue

from ci_evals.domain.base import NonBlank
from ci_evals.domain.checks.matcher import Conditions
from ci_evals.domain.checks.matching import ABSENT, Value, described, meets, shown
from ci_evals.domain.checks.strict_check import LastingCheck, family
from ci_evals.domain.criterion import JsonPathText
from ci_evals.domain.transcript import Transcript
from ci_evals.domain.verdict import Cause, Verdict


class StateCheck(Conditions, LastingCheck):
    """Passes if what a probe returned after the conversation meets the conditions."""

    strict: Literal["state"]
    probe: NonBlank = Field(description="The probe's name, as in `probes`.")
    path: JsonPathText | None = Field(
        None, description="A JSONPath into what the probe returned; without one, all of it."
    )

    @classmethod
    def evidence(cls) -> None:
        return None

    def _decide(self, transcript: Transcript) -> Verdict:
        value = self._value(transcript)
        if isinstance(value, Verdict):
            return value
        subject = f"the probe {self.probe}"
        if self.path:
            subject = f"{self.path} of {subject}"
        seen = f"after the conversation, {subject} is {shown(value)}"
        is_met = meets(value, self)
        if is_met is None:
            return _unknown(f"{seen}, in which a pattern was searched without an end")
        if is_met:
            return Verdict.passed(seen)
        return Verdict.failed(f"{seen}, expected {described(self)}")

    def _value(self, transcript: Transcript) -> Value | Verdict:
        """Return what the conditions are about; a verdict if it is not known."""
        if transcript.unanswered is not None:
            message = f"message {transcript.unanswered} got no reply"
            return _unknown(f"{message}: the agent may not have finished")
        result = transcript.probes.get(self.probe)
        if result is None:
            return _unknown(f"the probe {self.probe} did not run")
        if result.error is not None:
            return _unknown(f"the probe {self.probe} failed: {result.error}")
        if self.path is None:
            return result.value
        return self._chosen(self.path, result.value)

    def _chosen(self, path: str, returned: JsonValue) -> Value | Verdict:
        """Return what the path chooses; a verdict if it can choose nothing from this."""
        if path.strip() != "$" and not isinstance(returned, dict | list):
            kind = _plain_kind(returned)
            return _unknown(f"the probe {self.probe} returned {kind}, in which there is no {path}")
        from ci_evals.support.json_path import JsonPath  # noqa: PLC0415  # 0.1 s, for those who need it

        try:
            matches = JsonPath(path).find(returned)
        except ValueError as error:
            return _unknown(f"what the probe {self.probe} returned {error}")
        if not matches:
            return ABSENT
        return matches[0] if JsonPath(path).single else list(matches)

    def reads_values(self) -> bool:
        return True


FAMILY = family(StateCheck)


def _unknown(reason: str) -> Verdict:
    return Verdict.undecided(Cause.NO_EVIDENCE, reason)


def _plain_kind(value: JsonValue) -> str:
    if value is None:
        return "null"
    return "a text" if isinstance(value, str) else "a plain value"
