"""Steps of a world: each kind on the real thing, and what their faults are called."""

import asyncio
import json
import os
import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from werkzeug import Response

from ci_evals.domain.errors import WorldError
from ci_evals.domain.transcript import ProbeResult
from ci_evals.domain.world import MAX_PROBE_CHARACTERS, Step, World
from ci_evals.extensions.worlds.world_steps import WorldSteps
from ci_evals.support.redaction import Redactor

NAMES = {
    "userInfo": {"order": "A 1/2", "plan": {"name": "gold"}},
    "trial": {"id": "t1"},
    "session": {"id": "s1"},
}
SECRET = "shop-key-4f81aa02"


@pytest.fixture
def steps():
    return WorldSteps({"PATH": os.environ["PATH"]}, Redactor(values=[SECRET]))


@pytest.fixture
def look(steps):
    """Returns what one probe returns."""

    async def looked(names=NAMES, **step):
        return (await steps.probe(World(probes={"it": Step(**step)}), names))["it"]

    return looked


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """A database in the current folder."""
    monkeypatch.chdir(tmp_path)
    with closing(sqlite3.connect("shop.db")) as database, database:
        database.execute("CREATE TABLE orders (id TEXT PRIMARY KEY, status TEXT, amount REAL, data BLOB)")
        database.execute("INSERT INTO orders VALUES ('A 1/2', 'paid', 42.0, x'ff00')")
    return "sqlite:///shop.db"


async def test_rows_are_objects_and_parameters_are_bound(look, shop):
    """A quote in a value ends no text of the statement."""
    sql = {
        "url": shop,
        "statement": "SELECT *, :plan AS plan FROM orders WHERE id = :id",
        "parameters": {"id": "{{userInfo.order}}", "plan": "{{userInfo.plan.name}}' OR '1'='1"},
    }

    assert await look(sql=sql) == ProbeResult(
        value=[{"id": "A 1/2", "status": "paid", "amount": 42.0, "data": "_wA=", "plan": "gold' OR '1'='1"}]
    )


async def test_a_setup_changes_the_world_and_a_probe_sees_it(steps, shop):
    """Steps are done in order, and what they write stays written."""
    world = World(
        setup=(
            Step(sql={"url": shop, "statement": "DELETE FROM orders"}),
            Step(
                sql={
                    "url": shop,
                    "statement": "INSERT INTO orders (id, status) VALUES (:id, 'new')",
                    "parameters": {"id": "{{trial.id}}"},
                }
            ),
        ),
        probes={"orders": Step(sql={"url": shop, "statement": "SELECT id, status FROM orders"})},
        teardown=(Step(sql={"url": shop, "statement": "DROP TABLE orders"}),),
    )

    await steps.set_up(world, NAMES)
    assert (await steps.probe(world, NAMES))["orders"].value == [{"id": "t1", "status": "new"}]
    await steps.tear_down(world, NAMES)

    assert steps.notes() == ()
    with pytest.raises(
        WorldError, match=r"^setup\[0\]: the sql step was refused by shop.db: no such table: orders"
    ):
        await steps.set_up(world, NAMES)


@pytest.mark.parametrize(
    ("statement", "parameters", "why"),
    [
        ("SELEKT 1", {}, 'near "SELEKT": syntax error'),
        ("SELECT 1; SELECT 2", {}, "You can only execute one statement at a time"),
        ("SELECT :id", {}, "You did not supply a value for binding"),
        ("SELECT :id", {"id": {"a": 1}}, "type 'dict' is not supported"),
        ("SELECT :id", {"id": 2**70}, "too large"),
        ("INSERT INTO orders (id) VALUES ('A 1/2')", {}, "UNIQUE constraint failed"),
    ],
)
async def test_a_statement_that_is_refused(look, shop, statement, parameters, why):
    """The message is the database's."""
    seen = await look(sql={"url": shop, "statement": statement, "parameters": parameters})

    assert seen.error.startswith("the sql step was refused by shop.db: ")
    assert why in seen.error


async def test_a_statement_without_an_end_is_ended(look, shop):
    """It is interrupted in the database, and leaves the file free."""
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"

    seen = await look(sql={"url": shop, "statement": endless}, timeout=0.3)

    assert seen.error == "the sql step did not end within 0.3 s"
    changed = await look(sql={"url": shop, "statement": "UPDATE orders SET status = 'new'"}, timeout=5)
    assert changed == ProbeResult(value=[])


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        (
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 10001) SELECT i FROM n",
            "the sql step found more than 10,000 rows: select fewer",
        ),
        ("SELECT hex(zeroblob(30000)) AS big", "it returned 60,012 characters, more than the 50,000"),
    ],
)
async def test_a_huge_result_is_no_result(look, shop, statement, why):
    """Half of the rows would be a lie."""
    assert why in (await look(sql={"url": shop, "statement": statement})).error


async def test_an_unknown_kind_of_database(look):
    """The address is not repeated, as it may hold a password."""
    seen = await look(sql={"url": "cheesedb://u:geheim@host/x", "statement": "SELECT 1"})

    assert seen.error == ("the sql step was refused: Can't load plugin: sqlalchemy.dialects:cheesedb")
    assert "no secret" not in seen.error


async def test_a_driver_that_is_not_installed(look):
    """The message names it."""
    seen = await look(sql={"url": "mysql+pymysql://shop@host/x", "statement": "SELECT 1"})

    assert seen.error.startswith("the sql step needs the driver pymysql for this database: pip install it")


async def test_without_sqlalchemy_the_extra_is_named(look, monkeypatch):
    """sqlite needs nothing, everything else does."""
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)

    seen = await look(sql={"url": "postgresql://host/x", "statement": "SELECT 1"})

    assert seen.error == "the sql step needs SQLAlchemy for this database: pip install 'ci-evals[sql]'"


async def test_a_request(look, httpserver):
    """Values are escaped in the address, and keep their types in the body."""
    httpserver.expect_request(
        "/orders/A 1/2", method="POST", headers={"X-Plan": "gold"}, json={"plan": {"name": "gold"}, "n": 1}
    ).respond_with_json({"status": "refunded"})
    http = {
        "method": "POST",
        "url": httpserver.url_for("/orders/") + "{{userInfo.order}}",
        "headers": {"X-Plan": "{{userInfo.plan.name}}"},
        "json": {"plan": "{{userInfo.plan}}", "n": 1},
    }
    seen = []
    httpserver.expect_request("/seen").respond_with_handler(
        lambda request: seen.append(request) or Response("ok")
    )

    assert await look(http=http) == ProbeResult(value={"status": "refunded"})
    assert await look(http={"url": httpserver.url_for("/seen?id=") + "{{userInfo.order}}"}) == ProbeResult(
        value="ok"
    )
    assert seen[0].query_string == b"id=A%201%2F2"
    assert not seen[0].data


@pytest.mark.parametrize(
    ("status", "body", "why"),
    [
        (404, '{"detail": "no order"}', "with status 404: no order"),
        (302, "", "with status 302: an empty body"),
        (500, f"the key {SECRET} is wrong", "with status 500: the key *** is wrong"),
    ],
)
async def test_a_request_that_is_refused(look, httpserver, status, body, why):
    """The server's words are in the message, secrets are not."""
    httpserver.expect_request("/x").respond_with_data(body, status=status)

    seen = await look(http={"url": httpserver.url_for("/x")})

    assert seen.error == f"the http step was answered by localhost:{httpserver.port} {why}"


async def test_json_that_was_cut_off_is_no_text(look, httpserver):
    """`exists: false` would hold of any text."""
    cut = '{"refund": {"id": 7'
    httpserver.expect_request("/cut").respond_with_data(cut, content_type="application/problem+json")
    seen = await look(http={"url": httpserver.url_for("/cut")})
    assert seen.error.endswith("said application/problem+json, and sent what is no JSON; it may be cut off")
    httpserver.expect_request("/text").respond_with_data(cut, content_type="text/plain")
    assert await look(http={"url": httpserver.url_for("/text")}) == ProbeResult(value=cut)


@pytest.mark.parametrize(
    ("http", "why"),
    [
        ({"url": "http://127.0.0.1:9/x"}, "got no answer from 127.0.0.1:9: "),
        ({"url": "ftp://127.0.0.1/x"}, "got no answer from 127.0.0.1: "),
        ({"url": "orders/1"}, "got no answer from : "),
        (
            {"url": "http://127.0.0.1:9/x", "headers": {"A": "b\nc: d"}},
            "the header A holds characters that no HTTP",
        ),
        ({"url": "http://127.0.0.1:9/x", "headers": {"A\n": "b"}}, "got no answer from 127.0.0.1:9: "),
    ],
)
async def test_a_request_that_cannot_be_made(look, http, why):
    """Each fault of an address or a header has a message."""
    assert f"the http step {why}" in (await look(http=http)).error


async def test_an_answer_that_is_too_large(look, httpserver):
    """It is not read to its end."""
    httpserver.expect_request("/x").respond_with_data("x" * 10_500_000)

    assert "answered with more than 10 MB" in (await look(http={"url": httpserver.url_for("/x")})).error


async def test_a_program(look):
    """It gets its arguments as they are, and our own keys are not in its environment."""
    command = [
        sys.executable,
        "-c",
        "import sys, json; print(json.dumps(sys.argv[1:]))",
        "{{userInfo.order}}; ls",
        "$HOME",
    ]

    assert await look(command=command) == ProbeResult(value=["A 1/2; ls", "$HOME"])


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (["/no/such/program"], "could not start /no/such/program: No such file or directory"),
        ([sys.executable, "-c", f"import sys; sys.exit('no: {SECRET}')"], "ended with code 1: no: ***"),
        (
            [
                sys.executable,
                "-c",
                "import os, sys, time; os.close(1); os.close(2); time.sleep(1.5); sys.exit(3)",
            ],
            "ended with code 3",
        ),
        ([sys.executable, "-c", "print('x' * 11_000_000)"], "printed more than 10 MB"),
        ([sys.executable, "-c", "for _ in range(200): print('x' * 100_000)"], "printed more than 10 MB"),
        ([sys.executable, "-c", "while True: print('x' * 100_000)"], "printed more than 10 MB"),
    ],
)
async def test_a_program_that_fails(look, command, why):
    """Its last words are in the message."""
    assert why in (await look(command=command)).error


def _alive(pid):
    """True unless it has ended, be it that nobody has collected it yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")
async def test_a_program_that_hangs_is_killed_with_its_children(look, tmp_path):
    """Nothing of it is left after its time."""
    file = tmp_path / "pid"
    child = f"import os, time; open({str(file)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    code = (
        f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}], start_new_session=True)"
    )
    begun = time.monotonic()

    seen = await look(command=[sys.executable, "-c", code], timeout=3)

    assert seen.error == "the command step did not end within 3 s"
    assert time.monotonic() - begun < 30
    assert not _alive(int(file.read_text()))


@pytest.fixture
def functions(tmp_path, monkeypatch):
    """A module of functions in the current folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.py").write_text(
        "import os, sys, time\n"
        "def nothing(): print('printed')\n"
        "def all(user_info, trial_id, session_id=None): return [user_info['order'], trial_id, session_id]\n"
        "async def later(**names): return sorted(names)\n"
        "def wrong(): raise KeyError('order')\n"
        "def leaves(): sys.exit(0)\n"
        "def dies(): os._exit(3)\n"
        "def no_json(): return {1, 2}\n"
        "def no_number(): return float('nan')\n"
        "def hangs(): time.sleep(600)\n"
        "def huge(): return 'x' * 11_000_000\n"
        "class Shop:\n"
        "    @staticmethod\n"
        "    def orders(): return 3\n"
    )


@pytest.mark.parametrize(
    ("function", "value"),
    [
        ("nothing", None),
        ("all", ["A 1/2", "t1", "s1"]),
        ("later", ["session_id", "trial_id", "user_info"]),
        ("Shop.orders", 3),
    ],
)
async def test_a_function(look, functions, function, value):
    """It gets what it has parameters for."""
    assert await look(python=f"shop:{function}") == ProbeResult(value=value)


@pytest.mark.parametrize(
    ("function", "why"),
    [
        ("shop:wrong", "raised KeyError: 'order'"),
        ("shop:leaves", "raised SystemExit: 0"),
        ("shop:dies", "ended its process"),
        ("shop:no_json", "returned what JSON cannot hold: Object of type set is not JSON serializable"),
        (
            "shop:no_number",
            "returned what JSON cannot hold: Out of range float values are not JSON compliant",
        ),
        ("shop:missing", "raised AttributeError: module 'shop' has no attribute 'missing'"),
        ("no_shop:orders", "raised ModuleNotFoundError: No module named 'no_shop'"),
        ("shop:huge", "returned more than 10 MB"),
    ],
)
async def test_a_function_that_fails(look, functions, function, why):
    """It cannot harm the run, and the message is what Python says."""
    assert (await look(python=function)).error.startswith(f"the python step {why}")


async def test_a_function_that_hangs_is_killed(look, functions):
    """The probe has no result."""
    assert (await look(python="shop:hangs", timeout=2)).error == "the python step did not end within 2 s"


async def test_a_file(look, tmp_path, monkeypatch):
    """As text or as JSON."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t1.json").write_text('{"refunded": 42}')

    assert await look(file={"path": "{{trial.id}}.json", "format": "json"}) == ProbeResult(
        value={"refunded": 42}
    )
    assert await look(file={"path": "t1.json"}) == ProbeResult(value='{"refunded": 42}')


async def test_files_that_cannot_be_read(look, tmp_path, monkeypatch):
    """Only files below the current folder are read, whatever a link or a user's data says."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (tmp_path / "secret").write_text("secret")
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "no.json").write_text("{")
    os.mkfifo(folder / "pipe")

    async def error(path, **file):
        names = {**NAMES, "userInfo": {"path": path}}
        return (await look(names, file={"path": "{{userInfo.path}}", **file})).error

    assert "may not read ../secret: it is outside of " in await error("../secret")
    assert "may not read link: it is outside of " in await error("link")
    assert "could not read none: No such file or directory" in await error("none")
    assert "could not read pipe: it is not a file" in await error("pipe")
    assert "could not read .: it is not a file" in await error(".")
    assert "could not read no.json: not JSON" in await error("no.json", format="json")
    assert "embedded null" in await error("a\0b")


async def test_a_session_without_an_id(look):
    """The probe has no result: it would have looked up something else."""
    names = {"userInfo": {}, "trial": {"id": "t1"}}

    seen = await look(names, command=["echo", "{{session.id}}"])

    assert seen.error == (
        "the command step names {{session.id}}, which is unknown: the agent's session has no id"
    )


@pytest.mark.parametrize(
    "step",
    [
        {"http": {"url": "http://127.0.0.1:9/{{userInfo.half}}"}},
        {"http": {"url": "http://127.0.0.1:9/", "json": {"half": "{{userInfo.half}}"}}},
        {"sql": {"url": "sqlite:///{{userInfo.half}}.db", "statement": "SELECT 1"}},
        {
            "sql": {
                "url": "sqlite:///:memory:",
                "statement": "SELECT :a",
                "parameters": {"a": "{{userInfo.half}}"},
            }
        },
        {"command": ["echo", "{{userInfo.half}}"]},
        {"file": {"path": "{{userInfo.half}}"}},
    ],
)
async def test_half_of_a_character_is_an_error_of_the_step(look, step):
    """JSON can carry it in, and no system takes it."""
    assert (await look({**NAMES, "userInfo": {"half": "\ud800"}}, **step)).error


async def test_a_path_is_one_on_the_agents_server(look, httpserver):
    """After its address; an agent without one has none."""
    httpserver.expect_request("/shop/orders/s1").respond_with_json({"status": "paid"})
    step = Step(http={"url": "/orders/{{session.id}}"})

    on_server = WorldSteps({}, Redactor(), httpserver.url_for("/shop/"))
    seen = (await on_server.probe(World(probes={"it": step}), NAMES))["it"]

    assert seen == ProbeResult(value={"status": "paid"})
    assert (await look(http={"url": "/orders/1"})).error == (
        "the http step names the path /orders/1 of an agent without an address; write the full URL"
    )


async def test_one_probe_that_fails_leaves_the_others(steps, shop):
    """Each has a result of its own."""
    world = World(
        probes={
            "bad": Step(sql={"url": shop, "statement": "SELECT * FROM none"}),
            "good": Step(sql={"url": shop, "statement": "SELECT 1 AS n"}),
        }
    )

    seen = await steps.probe(world, NAMES)

    assert [*seen] == ["bad", "good"]
    assert "no such table" in seen["bad"].error
    assert seen["good"].value == [{"n": 1}]


async def test_a_teardown_does_all_its_steps(steps, shop):
    """The first failure is in a note, with the number of conversations."""
    world = World(
        teardown=(
            Step(command=["/no/such/program"]),
            Step(sql={"url": shop, "statement": "DELETE FROM orders"}),
        ),
        probes={"orders": Step(sql={"url": shop, "statement": "SELECT id FROM orders"})},
    )

    await steps.tear_down(world, NAMES)
    await steps.tear_down(world, NAMES)

    assert (await steps.probe(world, NAMES))["orders"].value == []
    (note,) = steps.notes()
    assert note.startswith("the teardown of a conversation failed 2 times, ")
    assert note.endswith(
        "teardown[0]: the command step could not start /no/such/program: No such file or directory"
    )


async def test_a_teardown_that_is_cut_off_says_so(steps):
    """A run that is interrupted has few seconds."""
    world = World(teardown=(Step(command=["sleep", "60"]),))

    task = asyncio.create_task(steps.tear_down(world, NAMES))
    await asyncio.sleep(0.5)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert "teardown[0]: was cut off" in steps.notes()[0]


def test_the_limit_of_a_probe_holds_a_table_of_orders():
    """A hundred orders are no huge result."""
    orders = [
        {"id": f"order-{n}", "status": "refunded", "amount": 42.5, "currency": "EUR"} for n in range(100)
    ]

    assert len(json.dumps(orders)) < MAX_PROBE_CHARACTERS
