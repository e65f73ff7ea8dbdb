"""Checks that are code. The function is called by `ci_evals.grading.code_check`."""

from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from ci_evals.domain.base import NonBlank
from ci_evals.domain.checks.replies import unless_unanswered
from ci_evals.domain.checks.strict_check import LastingCheck, family
from ci_evals.domain.transcript import Transcript
from ci_evals.domain.verdict import Cause, Verdict

NO_CODE = Verdict.undecided(Cause.NO_EVIDENCE, "functions are not run here")


def _is_function(name: str) -> str:
    module, colon, attribute = name.partition(":")
    parts = (*module.split("."), *attribute.split("."))
    if not colon or not all(part.isidentifier() for part in parts):
        message = "must be 'module:attribute', such as 'checks:refunded'"
        raise PydanticCustomError("no_function", message)
    return name


class PythonCheck(LastingCheck):
    """Passes if a Python function says so."""

    code_key: ClassVar[str | None] = "function"

    strict: Literal["python"]
    function: Annotated[NonBlank, AfterValidator(_is_function)] = Field(
        description="`module:attribute`. It gets the conversation, the trace and what the probes returned, "
        "and returns true or false, a share from 0 to 1, or a pair of one of these and a reason."
    )

    @classmethod
    def evidence(cls) -> None:
        return None

    def _decide(self, transcript: Transcript) -> Verdict:
        return unless_unanswered(NO_CODE, transcript)

    def reads_values(self) -> bool:
        return True


FAMILY = family(PythonCheck)
