"""The options of `run` that export its results over OTLP."""

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from ci_evals.domain.options import Group, Names, Option

if TYPE_CHECKING:  # every run imports this module, for its options
    from ci_evals.domain.results.run import Results
    from ci_evals.support.redaction import Redactor


class OtlpEvents(StrEnum):
    """The signals that carry the verdicts."""

    LOG = "log"
    """A log record for each."""
    SPAN = "span"
    """An event of the test's span for each."""


OPTIONS = (
    Option(
        name="otlp_endpoint",
        kind=str,
        metavar="URL",
        help="OpenTelemetry backend to export the results to.\n\n"
        "After the run, each test becomes a span and each verdict a log record, sent over OTLP/HTTP with "
        "the headers in OTEL_EXPORTER_OTLP_HEADERS. A failure is only a warning.",
        names=Names.ADDRESS,
        group=Group.AGENT,
    ),
    Option(
        name="otlp_events",
        kind=OtlpEvents,
        default=OtlpEvents.LOG,
        help="--otlp-endpoint: what carries the verdicts.\n\n"
        "`log`: a log record each, sent to `/v1/logs`. `span`: an event of the test's span, for backends "
        "that take only traces.",
        group=Group.AGENT,
        recorded=False,
    ),
)


def is_asked(settings: Any) -> bool:
    """Return whether the options name a backend."""
    return settings.otlp_endpoint is not None


def check(settings: Any, environ: Mapping[str, str]) -> None:
    """Raise `UsageError` if results can never be sent there."""
    from ci_evals.extensions.otlp_export import export  # noqa: PLC0415  # 0.1 s, for few runs

    export.check(settings.otlp_endpoint, environ)


async def send(results: "Results", settings: Any, environ: Mapping[str, str], redactor: "Redactor") -> None:
    """Send the results; raise `CiEvalsError` if that fails."""
    from ci_evals.extensions.otlp_export import export  # noqa: PLC0415  # likewise

    as_logs = settings.otlp_events == OtlpEvents.LOG
    await export.export(results, settings.otlp_endpoint, environ, redactor, as_logs=as_logs)
