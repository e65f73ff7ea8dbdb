"""Steps of a world: each kind on the real thing, and what their faults are called."""

import asyncio
import json
import os
import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path

import postgres
import pytest
from each_row import each_row
from werkzeug import Response

from ci_evals.domain.errors import WorldError
from ci_evals.domain.transcript import ProbeResult
from ci_evals.domain.world import MAX_PROBE_CHARACTERS, Step, World
from ci_evals.extensions.worlds.world_steps import WorldSteps
from ci_evals.support.redaction import Redactor
from ci_evals.support.secrets import in_addresses

NAMES = {"userInfo": {"order": "A 1/2", "plan": {"name": "gold"}}}
NAMES |= {"trial": {"id": "t1"}, "session": {"id": "s1"}}
SECRET = "shop-key-4f81aa02"


@pytest.fixture
def steps():
    return WorldSteps({"PATH": os.environ["PATH"]}, Redactor(values=[SECRET]))


@pytest.fixture
def probe_value(steps):
    async def looked(names=NAMES, **step):
        return (await steps.probe(World(probes={"it": Step(**step)}), names))["it"]

    return looked


@pytest.fixture
def shop(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with closing(sqlite3.connect("shop.db")) as database, database:
        database.execute("CREATE TABLE orders (id TEXT PRIMARY KEY, status TEXT, amount REAL, data BLOB)")
        database.execute("INSERT INTO orders VALUES ('A 1/2', 'paid', 42.0, x'ff00')")
    return "sqlite:///shop.db"


async def test_sql_parameters_are_bound_and_rows_become_json(probe_value, shop):
    values = {"id": "{{userInfo.order}}", "plan": "{{userInfo.plan.name}}' OR '1'='1"}
    statement = "SELECT *, :plan AS plan FROM orders WHERE id = :id"
    sql = {"url": shop, "statement": statement, "parameters": values}
    row = {"id": "A 1/2", "status": "paid", "amount": 42.0, "data": "_wA=", "plan": "gold' OR '1'='1"}
    assert await probe_value(sql=sql) == ProbeResult(value=[row])


async def test_oversized_sql_result_is_an_error(probe_value, shop):
    many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 10001) SELECT i FROM n"
    error = (await probe_value(sql={"url": shop, "statement": many})).error
    assert "the sql step found more than 10,000 rows: select fewer" in error
    error = (await probe_value(sql={"url": shop, "statement": "SELECT hex(zeroblob(30000)) AS big"})).error
    assert "it returned 60,012 characters, more than the 50,000" in error
    order = {"status": "refunded", "amount": 42.5, "currency": "EUR"}
    assert len(json.dumps([order | {"id": f"order-{n}"} for n in range(100)])) < MAX_PROBE_CHARACTERS


async def test_setup_probe_and_teardown_run_in_order(steps, shop):
    def sql(statement, **parameters):
        return Step(sql={"url": shop, "statement": statement, "parameters": parameters})

    insert = sql("INSERT INTO orders (id, status) VALUES (:id, 'new')", id="{{trial.id}}")
    probes = {"orders": sql("SELECT id, status FROM orders")}
    clear, drop = sql("DELETE FROM orders"), sql("DROP TABLE orders")
    world = World(setup=(clear, insert), probes=probes, teardown=(drop,))
    await steps.set_up(world, NAMES)
    assert (await steps.probe(world, NAMES))["orders"].value == [{"id": "t1", "status": "new"}]
    await steps.tear_down(world, NAMES)
    assert steps.notes() == ()
    message = r"^setup\[0\]: the sql step was refused by shop.db: no such table: orders"
    with pytest.raises(WorldError, match=message):
        await steps.set_up(world, NAMES)


async def test_cancelled_teardown_is_noted(steps):
    world = World(teardown=(Step(command=["sleep", "60"]),))
    task = asyncio.create_task(steps.tear_down(world, NAMES))
    await asyncio.sleep(0.5)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert "teardown[0]: was cut off" in steps.notes()[0]


@each_row(("statement", "parameters", "why"), [
    ("SELEKT 1", {}, 'near "SELEKT": syntax error'),
    ("SELECT 1; SELECT 2", {}, "You can only execute one statement at a time"),
    ("SELECT :id", {}, "You did not supply a value for binding"),
    ("SELECT :id", {"id": {"a": 1}}, "type 'dict' is not supported"),
    ("SELECT :id", {"id": 2**70}, "too large"),
    ("INSERT INTO orders (id) VALUES ('A 1/2')", {}, "UNIQUE constraint failed"),
])  # fmt: skip
async def test_refused_statement_has_message_of_database(probe_value, shop, statement, parameters, why):
    seen = await probe_value(sql={"url": shop, "statement": statement, "parameters": parameters})
    assert seen.error.startswith("the sql step was refused by shop.db: ")
    assert why in seen.error


async def test_timed_out_sql_statement_is_interrupted(probe_value, shop):
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    seen = await probe_value(sql={"url": shop, "statement": endless}, timeout=0.3)
    assert seen.error == "the sql step did not end within 0.3 s"
    update = {"url": shop, "statement": "UPDATE orders SET status = 'new'"}
    assert await probe_value(sql=update, timeout=5) == ProbeResult(value=[])


async def test_unknown_or_missing_database_driver_is_reported_with_install_command(probe_value, monkeypatch):
    seen = await probe_value(sql={"url": "cheesedb://u:geheim@host/x", "statement": "SELECT 1"})
    assert seen.error == "the sql step was refused: Can't load plugin: sqlalchemy.dialects:cheesedb"
    seen = await probe_value(sql={"url": "mysql+pymysql://shop@host/x", "statement": "SELECT 1"})
    assert seen.error.startswith("the sql step needs the driver pymysql for this database: pip install it")
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    seen = await probe_value(sql={"url": "postgresql://host/x", "statement": "SELECT 1"})
    assert seen.error == "the sql step needs SQLAlchemy for this database: pip install 'ci-evals[sql]'"


async def test_http_step_values_are_escaped_in_urls_and_typed_in_json(probe_value, httpserver):
    expected = {"plan": {"name": "gold"}, "n": 1}
    httpserver.expect_request(
        "/orders/A 1/2", method="POST", headers={"X-Plan": "gold"}, json=expected
    ).respond_with_json({"status": "refunded"})
    http = {
        "method": "POST", "url": httpserver.url_for("/orders/") + "{{userInfo.order}}",
        "headers": {"X-Plan": "{{userInfo.plan.name}}"}, "json": {"plan": "{{userInfo.plan}}", "n": 1},
    }  # fmt: skip
    seen = []
    httpserver.expect_request("/seen").respond_with_handler(lambda one: seen.append(one) or Response("ok"))
    assert await probe_value(http=http) == ProbeResult(value={"status": "refunded"})
    url = httpserver.url_for("/seen?id=") + "{{userInfo.order}}"
    assert await probe_value(http={"url": url}) == ProbeResult(value="ok")
    assert (seen[0].query_string, seen[0].data) == (b"id=A%201%2F2", b"")


async def test_path_of_http_step_is_appended_to_the_address_of_the_agent(probe_value, httpserver):
    httpserver.expect_request("/shop/orders/s1").respond_with_json({"status": "paid"})
    world = World(probes={"it": Step(http={"url": "/orders/{{session.id}}"})})
    on_server = WorldSteps({}, Redactor(), httpserver.url_for("/shop/"))
    assert (await on_server.probe(world, NAMES))["it"] == ProbeResult(value={"status": "paid"})
    error = (await probe_value(http={"url": "/orders/1"})).error
    reason = "of an agent without an address; write the full URL"
    assert error == f"the http step names the path /orders/1 {reason}"


async def test_refused_oversized_or_cut_http_answer_is_an_error_without_secrets(probe_value, httpserver):
    for status, body, why in (
        (404, '{"detail": "no order"}', "with status 404: no order"),
        (302, "", "with status 302: an empty body"),
        (500, f"the key {SECRET} is wrong", "with status 500: the key *** is wrong"),
    ):
        httpserver.expect_request(f"/{status}").respond_with_data(body, status=status)
        seen = await probe_value(http={"url": httpserver.url_for(f"/{status}")})
        assert seen.error == f"the http step was answered by localhost:{httpserver.port} {why}"
    httpserver.expect_request("/big").respond_with_data("x" * 10_500_000)
    seen = await probe_value(http={"url": httpserver.url_for("/big")})
    assert "answered with more than 10 MB" in seen.error
    # `exists: false` would hold of any text.
    cut = '{"refund": {"id": 7'
    httpserver.expect_request("/cut").respond_with_data(cut, content_type="application/problem+json")
    seen = await probe_value(http={"url": httpserver.url_for("/cut")})
    assert seen.error.endswith("said application/problem+json, and sent what is no JSON; it may be cut off")
    httpserver.expect_request("/text").respond_with_data(cut, content_type="text/plain")
    assert await probe_value(http={"url": httpserver.url_for("/text")}) == ProbeResult(value=cut)


@each_row(("http", "why"), [
    ({"url": "http://127.0.0.1:9/x"}, "got no answer from 127.0.0.1:9: "),
    ({"url": "ftp://127.0.0.1/x"}, "got no answer from 127.0.0.1: "),
    ({"url": "orders/1"}, "got no answer from : "),
    ({"url": "http://127.0.0.1:9/x", "headers": {"A": "b\nc: d"}},
     "the header A holds characters that no HTTP"),
    ({"url": "http://127.0.0.1:9/x", "headers": {"A\n": "b"}}, "got no answer from 127.0.0.1:9: "),
])  # fmt: skip
async def test_invalid_url_or_header_of_http_step_is_an_error_with_the_reason(probe_value, http, why):
    assert f"the http step {why}" in (await probe_value(http=http)).error


async def test_command_step_gets_arguments_literally(probe_value):
    code = "import sys, json; print(json.dumps(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "{{userInfo.order}}; ls", "$HOME"]
    assert await probe_value(command=command) == ProbeResult(value=["A 1/2; ls", "$HOME"])


async def test_unknown_session_id_in_a_step_is_an_error(probe_value):
    seen = await probe_value({"userInfo": {}, "trial": {"id": "t1"}}, command=["echo", "{{session.id}}"])
    reason = "which is unknown: the agent's session has no id"
    assert seen.error == f"the command step names {{{{session.id}}}}, {reason}"


SILENT_FAILURE = "import os, sys, time; os.close(1); os.close(2); time.sleep(1.5); sys.exit(3)"


@pytest.mark.parametrize(("command", "why"), [
    (["/no/such/program"], "could not start /no/such/program: No such file or directory"),
    ([sys.executable, "-c", f"import sys; sys.exit('no: {SECRET}')"], "ended with code 1: no: ***"),
    ([sys.executable, "-c", SILENT_FAILURE], "ended with code 3"),
    ([sys.executable, "-c", "print('x' * 11_000_000)"], "printed more than 10 MB"),
    ([sys.executable, "-c", "for _ in range(200): print('x' * 100_000)"], "printed more than 10 MB"),
    ([sys.executable, "-c", "while True: print('x' * 100_000)"], "printed more than 10 MB"),
])  # fmt: skip
async def test_failed_or_verbose_command_step_is_an_error_with_the_reason(probe_value, command, why):
    assert why in (await probe_value(command=command)).error


def _alive(pid):
    """True unless it has ended, be it that nobody has collected it yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")
async def test_timed_out_command_is_killed_with_its_children(probe_value, tmp_path):
    file = tmp_path / "pid"
    child = f"import os, time; open({str(file)!r}, 'w').write(str(os.getpid())); time.sleep(3000)"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}], start_new_session=1)"
    begun = time.monotonic()
    seen = await probe_value(command=[sys.executable, "-c", code], timeout=3)
    assert seen.error == "the command step did not end within 3 s"
    assert time.monotonic() - begun < 300
    assert not _alive(int(file.read_text()))


@pytest.fixture
def functions(tmp_path, monkeypatch):
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


@each_row(("function", "value"), [
    ("nothing", None),
    ("all", ["A 1/2", "t1", "s1"]),
    ("later", ["session_id", "trial_id", "user_info"]),
    ("Shop.orders", 3),
])  # fmt: skip
async def test_function_gets_the_arguments_it_declares(probe_value, functions, function, value):
    assert await probe_value(python=f"shop:{function}") == ProbeResult(value=value)


@each_row(("function", "why"), [
    ("shop:wrong", "raised KeyError: 'order'"),
    ("shop:leaves", "raised SystemExit: 0"),
    ("shop:dies", "ended its process"),
    ("shop:no_json", "returned what JSON cannot hold: Object of type set is not JSON serializable"),
    ("shop:no_number", "returned what JSON cannot hold: Out of range float values are not JSON compliant"),
    ("shop:missing", "raised AttributeError: module 'shop' has no attribute 'missing'"),
    ("no_shop:orders", "raised ModuleNotFoundError: No module named 'no_shop'"),
    ("shop:huge", "returned more than 10 MB"),
])  # fmt: skip
async def test_failing_python_step_becomes_probe_error(probe_value, functions, function, why):
    assert (await probe_value(python=function)).error.startswith(f"the python step {why}")


async def test_timed_out_function_is_killed(probe_value, functions):
    error = (await probe_value(python="shop:hangs", timeout=2)).error
    assert error == "the python step did not end within 2 s"


async def test_only_files_below_the_folder_are_read_as_text_or_json(probe_value, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t1.json").write_text('{"refunded": 42}')
    as_json = await probe_value(file={"path": "{{trial.id}}.json", "format": "json"})
    assert as_json == ProbeResult(value={"refunded": 42})
    assert await probe_value(file={"path": "t1.json"}) == ProbeResult(value='{"refunded": 42}')
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (tmp_path / "secret").write_text("secret")
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "no.json").write_text("{")
    os.mkfifo(folder / "pipe")

    async def error(path, **file):
        names = {**NAMES, "userInfo": {"path": path}}
        return (await probe_value(names, file={"path": "{{userInfo.path}}", **file})).error

    assert "may not read ../secret: it is outside of " in await error("../secret")
    assert "may not read link: it is outside of " in await error("link")
    assert "could not read none: No such file or directory" in await error("none")
    assert "could not read pipe: it is not a file" in await error("pipe")
    assert "could not read .: it is not a file" in await error(".")
    assert "could not read no.json: not JSON" in await error("no.json", format="json")
    assert "embedded null" in await error("a\0b")


HALF = "{{userInfo.half}}"


@each_row("step", [
    {"http": {"url": f"http://127.0.0.1:9/{HALF}"}},
    {"http": {"url": "http://127.0.0.1:9/", "json": {"half": HALF}}},
    {"sql": {"url": f"sqlite:///{HALF}.db", "statement": "SELECT 1"}},
    {"sql": {"url": "sqlite:///:memory:", "statement": "SELECT :a", "parameters": {"a": HALF}}},
    {"command": ["echo", HALF]},
    {"file": {"path": HALF}},
])  # fmt: skip
async def test_lone_surrogate_in_step_value_makes_step_fail(probe_value, step):
    """JSON can carry it in, and no system takes it."""
    assert (await probe_value({**NAMES, "userInfo": {"half": "\ud800"}}, **step)).error


async def test_failed_steps_prevent_no_other_probes_or_teardown_and_are_noted(steps, shop):
    statements = {"bad": "SELECT * FROM none", "good": "SELECT 1 AS n"}
    probes = {name: Step(sql={"url": shop, "statement": text}) for name, text in statements.items()}
    seen = await steps.probe(World(probes=probes), NAMES)
    assert ([*seen], "no such table" in seen["bad"].error) == (["bad", "good"], True)
    assert seen["good"].value == [{"n": 1}]
    statements = ("DELETE FROM orders", "SELECT id FROM orders")
    delete, select = (Step(sql={"url": shop, "statement": text}) for text in statements)
    world = World(teardown=(Step(command=["/no/such/program"]), delete), probes={"orders": select})
    for _ in range(2):
        await steps.tear_down(world, NAMES)
    assert (await steps.probe(world, NAMES))["orders"].value == []
    (note,) = steps.notes()
    assert note.startswith("the teardown of a conversation failed 2 times, ")
    reason = "could not start /no/such/program: No such file or directory"
    assert note.endswith(f"teardown[0]: the command step {reason}")


ORDER = {"userInfo": {"order": "A1"}, "trial": {"id": "t1"}}


@pytest.fixture(scope="module")
def url():
    with postgres.server() as address:
        yield address


@pytest.fixture
def ask(url):
    """Runs statements, and returns what the last one returns."""
    steps = WorldSteps({}, Redactor(values=in_addresses(url)))

    async def run_statements(*statements, url=url, timeout=20, **parameters):  # noqa: ASYNC109
        for statement in statements:
            step = Step(sql={"url": url, "statement": statement, "parameters": parameters}, timeout=timeout)
            result = (await steps.probe(World(probes={"it": step}), ORDER))["it"]
        return result

    return run_statements


@pytest.mark.slow
async def test_postgres_rows_become_json_timeouts_cancel_and_errors_have_no_credentials(ask, url):
    assert (await ask("DROP TABLE IF EXISTS orders")).value == []
    columns = "id text, amount numeric(8,2), tax numeric, paid date, data jsonb, raw bytea"
    await ask(f"CREATE TABLE orders ({columns})")
    row = """:id, 42.00, 7.98, '2026-11-21', '{"a": [1]}', '\\xff'"""
    await ask(f"INSERT INTO orders VALUES ({row})", id="{{userInfo.order}}")
    result = await ask("SELECT *, 'NaN'::float AS none FROM orders WHERE id = :id", id="A1")
    amounts = {"amount": 42, "tax": 7.98, "paid": "2026-11-21"}
    assert result.value == [{"id": "A1", **amounts, "data": {"a": [1]}, "raw": "_w==", "none": None}]
    refused = await ask("SELECT nothing FROM nowhere WHERE id = :id", id="geheim-123456")
    wrong_password = await ask("SELECT 1", url=url.replace(postgres.PASSWORD, "wrong-7f2d91c4e6"))
    assert refused.error == 'the sql step was refused: relation "nowhere" does not exist'
    assert 'password authentication failed for user "shop"' in wrong_password.error
    assert "7f2d91c4e6" not in wrong_password.error
    result = await ask("SELECT 1", url="postgres://shop:pg-7f2d91c4e6@127.0.0.1:9/shop")
    assert result.error.startswith("the sql step was refused: ")
    assert "127.0.0.1" in result.error
    assert "7f2d91c4e6" not in result.error
    sleepers = "SELECT count(*) AS n FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%'"
    result = await ask("SELECT pg_sleep(600)", timeout=1)
    assert result.error == "the sql step did not end within 1 s"
    for _ in range(100):
        left = (await ask(sleepers)).value
        if left == [{"n": 0}]:
            break
        await asyncio.sleep(0.1)
    assert left == [{"n": 0}]
