"""What is measured, and how a figure is made of it. Every figure is a ratio, or a growth, of one run."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median

from bench import spans, workload
from bench.processes import Field, Took, free_port, ray_python, run
from bench.server import TURNS

AGENT, LLM = 0.2, 0.3
"""Seconds that a call takes where wall time counts."""
_NO_WAITS = 1e6
"""A divisor of waits that leaves none."""
WAYS = ("aiohttp", "product")
"""The floor, and what stands on it."""


@dataclass(frozen=True)
class Size:
    """How much is played: small enough for a smoke test, or large enough to tell."""

    repeats: int = 5
    long_repeats: int = 2
    """Of what takes minutes."""
    small: int = 50
    large: int = 250
    parallel: tuple[int, ...] = (10, 100)
    rounds: int = 3
    at_a_time: tuple[int, ...] = (20, 100, 300)
    least: int = 100
    """Conversations where wall time counts, and at least so many rounds of those at a time."""
    faulty: int = 1000
    faulty_at_a_time: int = 100
    few: int = 500
    many: int = 5000
    starts: int = 11
    """Rounds of what is only started."""
    tests: tuple[int, int] = (100, 1100)
    """Numbers of tests, each of one trial."""
    gated: int = 100_000
    """Rows of another tool that are gated, and as many of their baseline."""
    speed: float = 1.0
    """By how much every wait is shortened."""


SMOKE = Size(
    repeats=1,
    long_repeats=1,
    small=2,
    large=4,
    parallel=(2,),
    rounds=1,
    at_a_time=(4,),
    least=4,
    faulty=4,
    faulty_at_a_time=4,
    few=2,
    many=4,
    starts=1,
    tests=(2, 4),
    gated=50,
    speed=10,
)
"""Next to nothing."""


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    measure: str
    floor: str
    ours: str
    figure: float | None
    """None where it cannot be measured here."""
    unit: str
    goal: float | None

    @property
    def met(self) -> bool | None:
        """True if the figure is within the goal; None if one of them is missing."""
        return None if self.goal is None or self.figure is None else self.figure <= self.goal


Measure = Callable[[Field, Size], Iterator[Row]]


def processor(field: Field, size: Size) -> Iterator[Row]:
    """Processor time of one conversation more, at few and at many in parallel, so that start-up cancels.

    Waits are shortened where few play at a time: in either case as many conversations end in a second.
    """
    margins: dict[tuple[str, int], list[float]] = {}
    for parallel in size.parallel * size.repeats:
        for way in WAYS:
            shorter = size.speed * max(size.parallel) / parallel
            took = [_play(field, way, n, parallel, shorter) for n in (size.small, size.large)]
            margin = (took[1].processor - took[0].processor) / (size.large - size.small)
            margins.setdefault((way, parallel), []).append(1000 * margin)
    told = {key: median(values) for key, values in margins.items()}
    for parallel in size.parallel:
        ratios = _ratios(margins["product", parallel], margins["aiohttp", parallel])
        yield Row(
            f"processor time of a conversation, {parallel} at a time",
            f"{told['aiohttp', parallel]:.1f} ms",
            f"{told['product', parallel]:.1f} ms",
            median(ratios),
            "×",
            4,
        )
    few, many = size.parallel[0], size.parallel[-1]
    yield Row(
        f"the same, {many} over {few} at a time",
        f"{told['aiohttp', many] / told['aiohttp', few]:.2f} ×",
        f"{told['product', few]:.1f} and {told['product', many]:.1f} ms",
        median(_ratios(margins["product", many], margins["product", few])),
        "×",
        1.3,
    )


def smallest(field: Field, size: Size) -> Iterator[Row]:
    """Processor time of one conversation more without any wait, over bare calls of two bytes.

    And that of the libraries that ci-evals calls by, alone.
    """
    parallel = min(20, size.large)
    ways = {
        "product": f"the same without waits, {parallel} at a time; the floor with the smallest bodies",
        "connected": "of that, the SDK and aiohttp alone, as ci-evals calls by them",
        "libraries": "the same calls by the SDK and httpx2 alone, on their own transport",
    }
    margins: dict[str, list[float]] = {way: [] for way in ("smallest", *ways)}
    for _ in range(size.repeats):
        for way, kept in margins.items():
            few, many = (
                _play(field, way, count, parallel, _NO_WAITS).processor for count in (size.small, size.large)
            )
            kept.append(1000 * (many - few) / (size.large - size.small))
    for way, title in ways.items():
        yield Row(
            title,
            f"{median(margins['smallest']):.1f} ms",
            f"{median(margins[way]):.1f} ms",
            median(_ratios(margins[way], margins["smallest"])),
            "×",
            3.5 if way == "product" else None,
        )


def many_tests(field: Field, size: Size) -> Iterator[Row]:
    """Memory for 1,000 more tests of one trial each, and wall time of their plan."""
    counts, parallel = size.tests, min(20, size.tests[0])
    peaks: dict[int, list[float]] = {count: [] for count in counts}
    plans: list[float] = []
    for _ in range(size.long_repeats):
        for count in counts:
            field.server.forget(agent=0.0, llm=0.0)
            peaks[count].append(field.product(count, parallel, most_tests=count).peak_mb)
        command = [sys.executable, "-m", "ci_evals", "plan", str(field.folder / f"suite-{counts[1]}.json")]
        plans.append(run(command).wall)
    yield Row(
        "growth of memory for 1,000 more tests of one trial",
        "",
        f"{median(peaks[counts[0]]):.0f} and {median(peaks[counts[1]]):.0f} MB in all",
        1000
        * median(many - few for few, many in zip(*peaks.values(), strict=True))
        / (counts[1] - counts[0]),
        "MB",
        15,
    )
    yield Row(f"`ci-evals plan` of {counts[1]} tests", "", "", median(plans), "s", 1)


def traces(field: Field, size: Size) -> Iterator[Row]:
    """Processor time of one conversation more whose agent sends spans, over one whose agent sends none."""
    parallel = size.parallel[0]
    shorter = size.speed * max(size.parallel) / parallel
    margins: dict[bool, list[float]] = {False: [], True: []}

    def play(conversations: int, *, traced: bool) -> float:
        exporter = {"otlp": port, "export": spans.DELAY / shorter} if traced else {}
        options = ("--otlp", f"--otlp-port={port}") if traced else ()
        field.server.forget(agent=AGENT / shorter, llm=LLM / shorter, **exporter)
        took = field.product(conversations, parallel, *options, text_only=True)
        spans.check(field.results, TURNS * conversations * traced)
        return took.processor

    for _ in range(size.repeats):
        for traced, kept in margins.items():
            port = free_port()
            few, many = (play(conversations, traced=traced) for conversations in (size.small, size.large))
            kept.append(1000 * (many - few) / (size.large - size.small))
    yield Row(
        f"processor time of a conversation with {spans.SPANS} spans a turn (`--otlp`)",
        f"{median(margins[False]):.1f} ms without",
        f"{median(margins[True]):.1f} ms",
        median(_ratios(margins[True], margins[False])),
        "×",
        1.25,
    )


def wall(field: Field, size: Size) -> Iterator[Row]:
    """Wall time of whole runs over the bare calls' and over the ideal schedule; and connections opened."""
    goals = {20: 1.03, 100: 1.15, 300: 1.45}
    for parallel in size.at_a_time:
        conversations = max(size.least, size.rounds * parallel)
        walls: dict[str, list[float]] = {way: [] for way in WAYS}
        opened: list[int] = []
        for _ in range(size.repeats):
            for way in WAYS:
                walls[way].append(_play(field, way, conversations, parallel, size.speed).wall)
                opened.append(field.server.books()["connections"])
        ideal = workload.ideal_seconds(conversations, parallel, AGENT / size.speed, LLM / size.speed)
        told = {way: f"{median(walls[way]) / ideal:.3f} × ideal" for way in WAYS}
        yield Row(
            f"wall time, {conversations} conversations, {parallel} at a time",
            told["aiohttp"],
            told["product"],
            median(_ratios(walls["product"], walls["aiohttp"])),
            "×",
            goals.get(parallel, 1.45),
        )
        yield Row(
            f"connections opened for each of {parallel} at a time",
            f"{median(opened[0::2]) / parallel:.2f}",
            f"{median(opened[1::2]) / parallel:.2f}",
            median(opened[1::2]) / parallel,
            "",
            3,
        )


def cluster(field: Field, size: Size) -> Iterator[Row]:
    """Wall time of whole runs whose trials are played on all processors, over the bare calls' on one."""
    parallel, python = max(size.at_a_time), ray_python()
    conversations = max(size.least, size.rounds * parallel)
    walls: dict[str, list[float]] = {way: [] for way in WAYS}
    for _ in range(size.repeats):
        walls["aiohttp"].append(_play(field, "aiohttp", conversations, parallel, size.speed).wall)
        field.server.forget(agent=AGENT / size.speed, llm=LLM / size.speed)
        took = field.product(conversations, parallel, "--cluster=ray", python=python)
        walls["product"].append(took.wall)
    ideal = workload.ideal_seconds(conversations, parallel, AGENT / size.speed, LLM / size.speed)
    shown = {way: f"{median(walls[way]) / ideal:.3f} × ideal" for way in WAYS}
    yield Row(
        f"wall time with `--cluster=ray`, {conversations} conversations, {parallel} at a time",
        shown["aiohttp"],
        shown["product"],
        median(_ratios(walls["product"], walls["aiohttp"])),
        "×",
        1.2,
    )


def memory(field: Field, size: Size) -> Iterator[Row]:
    """Growth of the peak memory from few to many trials; and what journal and reports take of many."""
    parallel = min(20, size.few)
    peaks: dict[tuple[str, int], list[float]] = {}
    reports: list[float] = []
    shares: list[float] = []
    journal: list[float] = []
    pages: list[float] = []
    opened: list[float] = []
    for _ in range(size.long_repeats):
        for way in WAYS:
            for conversations in (size.few, size.many):
                took = _play(field, way, conversations, parallel, 20 * size.speed)
                peaks.setdefault((way, conversations), []).append(took.peak_mb)
                if way == "product" and conversations == size.many:
                    ended = field.server.books()["last_request"] + LLM / (20 * size.speed)
                    reports.append(took.started + took.wall - ended)
                    shares.append(100 * reports[-1] / took.processor)
                    pages.append((field.results / "report.html").stat().st_size / 1e6)
                    again = run([sys.executable, "-m", "bench.journal", str(field.results)])
                    journal.append(100 * float(again.output) / took.processor)
                    look = run([sys.executable, "-m", "bench.opened", str(field.results / "report.html")])
                    opened += map(float, look.output.split())
    told = {key: median(values) for key, values in peaks.items()}

    def growth(way: str) -> float:
        return 1000 * (told[way, size.many] - told[way, size.few]) / (size.many - size.few)

    for conversations in (size.few, size.many):
        yield Row(
            f"peak memory, {conversations} trials, beyond 15 MB for each 1,000",
            f"{told['aiohttp', conversations]:.0f} MB in all",
            f"{told['product', conversations]:.0f} MB in all",
            told["product", conversations] - 0.015 * conversations,
            "MB",
            100,
        )
    yield Row(
        "growth of memory for each 1,000 trials",
        f"{growth('aiohttp'):.1f} MB",
        f"{growth('product'):.1f} MB",
        growth("product"),
        "MB",
        15,
    )
    yield Row(f"from the last call to the end, {size.many} trials", "", "", median(reports), "s", 4)
    yield Row("the same, of the run's processor time", "", "", median(shares), "%", 10)
    yield Row(f"the page of {size.many} trials", "", "", pages[-1], "MB", 20)
    seconds = median(opened) if opened else None
    yield Row(f"the page of {size.many} trials, opened in Chromium", "", "", seconds, "s", 2)
    yield Row(
        f"the journal of {size.many} trials, of the run's processor time", "", "", median(journal), "%", None
    )


def startup(field: Field, size: Size) -> Iterator[Row]:
    """How long a person waits, over a start of Python."""
    suite = field.folder / "suite-startup.json"
    workload.write_suite(suite, 50)
    program = [sys.executable, "-m", "ci_evals"]
    commands = {
        "pass": [sys.executable, "-c", "pass"],
        "--help": [*program, "--help"],
        "validate": [*program, "validate", str(suite)],
    }
    took: dict[str, list[float]] = {name: [] for name in (*commands, "first", "bare")}
    for _ in range(size.starts):
        for name, command in commands.items():
            took[name].append(run(command).wall)
        for name, way in (("bare", "aiohttp"), ("first", "product")):
            started = _play(field, way, 4, 4, 20 * size.speed).started
            took[name].append(field.server.books()["first_agent_request"] - started)
    bare = f"{1000 * median(took['pass']):.0f} ms"
    goals = {"--help": 6.0, "validate": None, "first": 25.0}
    titles = {"first": "the first request to the agent (bare calls: "}
    titles["first"] += f"{median(_ratios(took['bare'], took['pass'])):.0f} ×)"
    for name, goal in goals.items():
        yield Row(
            titles.get(name, f"`ci-evals {name}`"),
            f"{bare} (`python -c pass`)",
            f"{1000 * median(took[name]):.0f} ms",
            median(_ratios(took[name], took["pass"])),
            "×",
            goal,
        )


def faults(field: Field, size: Size) -> Iterator[Row]:
    """What 5 % of 429, 2 % of 500 and 1 % of broken connections cost, and whether a trial is lost.

    A message to an agent that may have arrived is not sent again: the trial is retried, so it takes
    some `--retries`.
    """
    parallel, conversations = size.faulty_at_a_time, size.faulty
    walls: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(size.long_repeats):
        for faulty in (False, True):
            took = _play(
                field, "product", conversations, parallel, size.speed, "--retries=9", faults=int(faulty)
            )
            walls[faulty].append(took.wall)
    yield Row(
        f"wall time with faults, {conversations} conversations, {parallel} at a time",
        f"{median(walls[False]):.1f} s without",
        f"{median(walls[True]):.1f} s",
        median(_ratios(walls[True], walls[False])),
        "×",
        1.35,
    )


def gate(field: Field, size: Size) -> Iterator[Row]:
    """Another tool's rows, read, compared with as many, and reported."""
    head, base = (
        workload.write_rows(field.folder / f"{name}.jsonl", size.gated, name) for name in ("head", "base")
    )
    command = [sys.executable, "-m", "ci_evals", "gate", str(head), f"--baseline={base}"]
    took = run([*command, f"--output-dir={field.results}"])
    measure = f"gate of {size.gated} rows against as many"
    yield Row(f"{measure}, processor time", "", "", took.processor, "s", 10)
    yield Row(f"{measure}, peak memory", "", "", took.peak_mb, "MB", 300)


def image(field: Field, size: Size) -> Iterator[Row]:  # noqa: ARG001  # as every measure
    """The size of the container image `ci-evals`, where one is built here."""
    command = ["docker", "image", "inspect", "--format", "{{.Size}}", "ci-evals"]
    try:
        told = subprocess.run(command, capture_output=True, text=True, check=True).stdout  # noqa: S603
    except (OSError, subprocess.CalledProcessError):
        told = ""
    yield Row("container image", "", "", int(told) / 1e6 if told else None, "MB", 180)


MEASURES: dict[str, Measure] = {
    "startup": startup,
    "processor": processor,
    "smallest": smallest,
    "traces": traces,
    "wall": wall,
    "cluster": cluster,
    "faults": faults,
    "memory": memory,
    "tests": many_tests,
    "gate": gate,
    "image": image,
}


def _play(
    field: Field, way: str, conversations: int, parallel: int, shorter: float, *options: str, faults: int = 0
) -> Took:
    """Plays so many conversations, every wait divided by `shorter`.

    Raises:
        RuntimeError: one was lost, or failed.
    """
    if way != "product":
        field.capture()
    field.server.forget(agent=AGENT / shorter, llm=LLM / shorter, faults=faults)
    if way == "product":
        return field.product(conversations, parallel, *options)
    return field.floor(way, conversations, parallel)


def _ratios(upper: list[float], lower: list[float]) -> list[float]:
    """Of each round by itself: what slows the machine down for a while slows both."""
    return [one / other for one, other in zip(upper, lower, strict=True)]
