"""Statements on a real PostgreSQL server, by SQLAlchemy and psycopg."""

import asyncio

import postgres
import pytest

from ci_evals.domain.world import Step, World
from ci_evals.extensions.worlds.world_steps import WorldSteps
from ci_evals.support.redaction import Redactor
from ci_evals.support.secrets import in_addresses

pytestmark = pytest.mark.slow

NAMES = {"userInfo": {"order": "A1"}, "trial": {"id": "t1"}}


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
            result = (await steps.probe(World(probes={"it": step}), NAMES))["it"]
        return result

    return run_statements


async def test_postgres_row_values_become_json(ask):
    assert (await ask("DROP TABLE IF EXISTS orders")).value == []
    columns = "id text, amount numeric(8,2), tax numeric, paid date, data jsonb, raw bytea"
    await ask(f"CREATE TABLE orders ({columns})")
    await ask(
        """INSERT INTO orders VALUES (:id, 42.00, 7.98, '2026-11-21', '{"a": [1]}', '\\xff')""",
        id="{{userInfo.order}}",
    )

    result = await ask("SELECT *, 'NaN'::float AS none FROM orders WHERE id = :id", id="A1")

    assert result.value == [
        {
            "id": "A1",
            "amount": 42,
            "tax": 7.98,
            "paid": "2026-11-21",
            "data": {"a": [1]},
            "raw": "_w==",
            "none": None,
        }
    ]


async def test_errors_of_server_have_no_credentials(ask, url):
    refused = await ask("SELECT nothing FROM nowhere WHERE id = :id", id="geheim-123456")
    wrong_password = await ask("SELECT 1", url=url.replace(postgres.PASSWORD, "wrong-7f2d91c4e6"))

    assert refused.error == 'the sql step was refused: relation "nowhere" does not exist'
    assert 'password authentication failed for user "shop"' in wrong_password.error
    assert "7f2d91c4e6" not in wrong_password.error
    result = await ask("SELECT 1", url="postgres://shop:pg-7f2d91c4e6@127.0.0.1:9/shop")

    assert result.error.startswith("the sql step was refused: ")
    assert "127.0.0.1" in result.error
    assert "7f2d91c4e6" not in result.error


async def test_timed_out_statement_is_cancelled_on_server(ask):
    sleepers = "SELECT count(*) AS n FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%'"

    result = await ask("SELECT pg_sleep(600)", timeout=1)

    assert result.error == "the sql step did not end within 1 s"
    for _ in range(100):
        left = (await ask(sleepers)).value
        if left == [{"n": 0}]:
            break
        await asyncio.sleep(0.1)
    assert left == [{"n": 0}]
