"""One statement on a database: sqlite by Python's own module, any other by SQLAlchemy."""

import sqlite3
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing, suppress
from decimal import Decimal
from typing import Any
from urllib.parse import unquote

from pydantic import JsonValue
from pydantic_core import to_jsonable_python

from ci_evals.support import payload
from ci_evals.support.documentation import extra
from ci_evals.support.json_text import JsonObject

MOST_ROWS = 10_000
_SQLITE = "sqlite:///"
_POSTGRES = ("postgres", "postgresql")
"""Schemes without a driver: the extra `sql` brings psycopg."""

_WITH_CONNECT_TIMEOUT = frozenset({"psycopg", "psycopg2", "pymysql", "mysqldb"})
"""Drivers whose wait for an unreachable server cannot be canceled, but has a limit of that name."""


class SqlError(Exception):
    """The database refuses a statement, or cannot be reached. Its text is a clause."""


class Statement:
    """A statement that runs in a thread of its own, and can be canceled from another one."""

    def __init__(self, url: str, statement: str, parameters: Mapping[str, Any], seconds: float) -> None:
        self._url, self._statement, self._parameters = url, statement, parameters
        self._seconds = seconds
        self._cancel: Callable[[], object] = lambda: None
        self._canceled = False

    def run(self) -> JsonValue:
        """Return the rows as objects; an empty list for a statement that has none.

        Raises:
            SqlError: it is refused, the driver is missing, or it has more than `MOST_ROWS` rows.
        """
        rows = self._sqlite() if self._url.startswith(_SQLITE) else self._sqlalchemy()
        if len(rows) > MOST_ROWS:
            raise SqlError(f"found more than {MOST_ROWS:,} rows: select fewer")
        return payload.clean([{name: _plain(value) for name, value in row.items()} for row in rows])

    def cancel(self) -> None:
        """End it where it is, as far as the database's driver can."""
        self._canceled = True
        with suppress(Exception):  # foreign code, and nobody waits for it any more
            self._cancel()

    def _cancel_by(self, cancel: Callable[[], object]) -> None:
        self._cancel = cancel
        if self._canceled:
            self.cancel()

    def _sqlite(self) -> list[JsonObject]:
        path = unquote(self._url.removeprefix(_SQLITE).partition("?")[0])
        try:
            with closing(sqlite3.connect(path, timeout=self._seconds)) as connection, connection:
                self._cancel_by(connection.interrupt)
                cursor = connection.execute(self._statement, self._parameters)
                names = [column[0] for column in cursor.description or ()]
                rows: Iterable[tuple[Any, ...]] = cursor.fetchmany(MOST_ROWS + 1)
                return [dict(zip(names, row, strict=True)) for row in rows]
        except (sqlite3.Error, sqlite3.Warning, OverflowError, ValueError) as error:
            raise SqlError(f"was refused by {path or 'sqlite'}: {error}") from None

    def _sqlalchemy(self) -> list[JsonObject]:
        try:
            import sqlalchemy  # noqa: PLC0415  # an extra
        except ImportError:
            raise SqlError(f"needs SQLAlchemy for this database: {extra('sql')}") from None
        scheme, separator, rest = self._url.partition("://")
        url = f"postgresql+psycopg{separator}{rest}" if scheme in _POSTGRES else self._url
        try:
            limits = {}
            if sqlalchemy.make_url(url).get_driver_name() in _WITH_CONNECT_TIMEOUT:
                limits["connect_timeout"] = max(1, round(self._seconds))
            engine = sqlalchemy.create_engine(url, poolclass=sqlalchemy.NullPool, connect_args=limits)
            with engine.begin() as connection:
                driver: Any = connection.connection.dbapi_connection
                self._cancel_by(getattr(driver, "cancel", None) or driver.close)
                result = connection.execute(sqlalchemy.text(self._statement), dict(self._parameters))
                if not result.returns_rows:
                    return []
                return [dict(row) for row in result.mappings().fetchmany(MOST_ROWS + 1)]
        except ImportError as error:
            raise SqlError(
                f"needs the driver {error.name or error} for this database: pip install it, or name another "
                "one in the address, as SQLAlchemy has them"
            ) from None
        except sqlalchemy.exc.SQLAlchemyError as error:
            # The text of a statement's error repeats its parameters, and that of a connection its address.
            raise SqlError(f"was refused: {_first_line(getattr(error, 'orig', None) or error)}") from None
        except (TypeError, ValueError) as error:  # of a driver, over an address or a parameter
            raise SqlError(f"was refused: {_first_line(error)}") from None


def _plain(value: Any) -> Any:
    """Return a column's value as JSON: a decimal as a number, a date as text, bytes as base 64."""
    if isinstance(value, Decimal):
        if not value.is_finite():
            return None
        return int(value) if value == value.to_integral_value() else float(value)
    return to_jsonable_python(value, fallback=str, bytes_mode="base64")


def _first_line(error: object) -> str:
    lines = str(error).splitlines()
    return lines[0] if lines else type(error).__name__
