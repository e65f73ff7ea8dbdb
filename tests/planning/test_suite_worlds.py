"""Setup, probes and teardown in suites: how they are read, and what is wrong with them, each at its place."""

import json
from pathlib import Path

import pytest
from each_row import each_row
from jsonschema import Draft202012Validator
from test_parse import a_suite, a_test, problems, read

from ci_evals.domain.suite import Suite, suite_schema
from ci_evals.domain.world import Step
from ci_evals.planning.selection import Selection, plan
from ci_evals.support.redaction import Redactor
from ci_evals.wiring.connections import Connections, keys_of

SHOP = {"sql": {"url": "sqlite:///shop.db", "statement": "SELECT * FROM orders WHERE id = :id"}}
ORDER = {**SHOP, "sql": {**SHOP["sql"], "parameters": {"id": "{{userInfo.order}}"}}}
STATE = {"criterion": "It is refunded", "strict": "state", "probe": "order", "equals": "refunded"}
USER = {"order": "A1", "plan": {"name": "gold"}, "none": None, "pets": ["cat"]}


def test_a_tests_own_world_comes_after_the_suites():
    """Steps are added, probes and the lock of one name replace the suite's."""
    own = a_test(
        name="own",
        setup=[{"command": ["two"]}],
        probes={"order": {"file": {"path": "order.json", "format": "json"}}, "mail": {"python": "a.b:C.d"}},
        teardown=[{"command": ["four"]}],
        lock="shop 2",
    )
    suite = read(
        a_suite(
            a_test(),
            own,
            setup=[{"command": ["one"], "timeout": 5}],
            probes={"order": {"http": {"url": "http://shop/1"}}},
            teardown=[{"command": ["three"]}],
            lock="shop",
        )
    ).suite
    plain, both = map(suite.world_of, suite.tests)

    assert [step.command for step in (*plain.setup, *plain.teardown)] == [["one"], ["three"]]
    assert plain.setup[0].timeout == 5
    assert plain.probes["order"].http.method == "GET"
    assert [step.command[0] for step in (*both.setup, *both.teardown)] == ["one", "two", "three", "four"]
    assert [*both.probes] == ["order", "mail"]
    assert both.probes["order"].file.format == "json"
    assert [suite.lock_of(test) for test in suite.tests] == ["shop", "shop 2"]
    assert not read(a_suite()).suite.world_of(read(a_suite()).suite.tests[0])


def test_every_kind_of_step_is_valid_under_the_schema():
    """Comments are allowed wherever the format has objects."""
    steps = [
        {
            "http": {
                "method": "POST",
                "url": "http://shop",
                "headers": {"x-plan": "a"},
                "json": {"x-a": 1},
                "x-why": 1,
            }
        },
        {"sql": {**SHOP["sql"], "parameters": {"id": [1]}, "x-why": ""}, "x-why": ""},
        {"command": ["reset", "--all"]},
        {"python": "shop.tools:reset"},
        {"file": {"path": "a.txt", "x-why": ""}},
    ]
    suite = a_suite(
        a_test(setup=steps, lock="a"), setup=steps, teardown=steps, probes={"x-a": steps[1], "b": steps[0]}
    )

    loaded = read(suite).suite

    Draft202012Validator(suite_schema()).validate(suite)
    assert [str(step) for step in loaded.setup] == ["http", "sql", "command", "python", "file"]
    assert loaded.setup[0].http.headers == {"x-plan": "a"}
    assert loaded.setup[0].http.json_ == {"x-a": 1}
    assert [*loaded.probes] == ["x-a", "b"]


@each_row(
    ("step", "problem"),
    [
        ({}, "setup[0]: needs exactly one of http, sql, command, python, file, found none"),
        (
            {**SHOP, "command": ["a"]},
            "setup[0]: needs exactly one of http, sql, command, python, file, found sql and command",
        ),
        ({"htp": {}}, "setup[0].htp: unknown key; did you mean 'http'?"),
        (
            {"http": {"method": "FETCH", "url": "a"}},
            "setup[0].http.method: 'FETCH' is not one of GET, POST, PUT, PATCH, DELETE",
        ),
        ({"http": {"adress": "a"}}, "setup[0].http.url: is missing"),
        ({"sql": {"url": " ", "statement": "x"}}, "setup[0].sql.url: must not be empty"),
        ({"command": "rm -rf"}, 'setup[0].command: must be a list, found "rm -rf"'),
        ({"command": []}, "setup[0].command: needs at least one item"),
        ({"python": "shop.reset"}, "setup[0].python: 'shop.reset' is not of the form module:attribute"),
        (
            {"python": "shop.py:reset()"},
            "setup[0].python: 'shop.py:reset()' is not of the form module:attribute",
        ),
        ({"file": {"path": "a", "format": "yaml"}}, "setup[0].file.format: 'yaml' is not one of text, json"),
        ({"command": ["a"], "timeout": 0}, "setup[0].timeout: 0 is not greater than 0"),
    ],
)
def test_malformed_step_of_a_world_is_refused(step, problem):
    """One message for each fault, at its place."""
    assert problem in problems(a_suite(setup=[step]))


def test_faults_of_probes_are_found_in_suites_and_tests():
    """By the probe's name."""
    found = problems(a_suite(a_test(probes={"a": {"file": {}}}), probes={"b": 1, " ": {"command": ["a"]}}))

    assert "tests[0].probes.a.file.path: is missing" in found
    assert "probes.b: must be an object, found 1" in found
    assert any("must not be empty" in problem for problem in found)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{{userinfo.order}}", "which is unknown; available: userInfo, trial.id, session.id"),
        ("a {{order}}", "which is unknown; available: userInfo, trial.id, session.id"),
        ("{{userInfo.ordr}}", "which the userInfo of 'one' lacks"),
        ("{{userInfo.plan.price}}", "which the userInfo of 'one' lacks"),
        ("{{userInfo.pets.1}}", "which the userInfo of 'one' lacks"),
        (
            "{{session.id}}",
            "which is known only once the agent has opened a session; use it in probes and teardown",
        ),
    ],
)
def test_names_that_are_unknown(text, complaint):
    """They would be replaced by nothing, and the step would do something else."""
    name = text[text.index("{{") : text.index("}}") + 2]

    assert problems(a_suite(a_test(userInfo=USER), setup=[{"command": ["reset", text]}])) == [
        f"setup[0].command[1]: holds {name}, {complaint}"
    ]


def test_names_that_are_known():
    """A part that is null is there."""
    text = "{{userInfo}} {{ userInfo.plan.name }} {{userInfo.none}} {{userInfo.pets.0}} {{trial.id}}"
    after = {
        "probes": {"a": {"file": {"path": "{{session.id}}"}}},
        "teardown": [{"command": ["{{session.id}}"]}],
    }

    assert read(a_suite(a_test(userInfo=USER, setup=[{"command": [text]}], **after))).suite.tests[0].setup


def test_a_name_of_the_suite_must_be_in_all_its_tests():
    """The message names the test that lacks it, and the place where the name stands."""
    suite = a_suite(a_test(userInfo=USER), a_test(name="two"), probes={"order": ORDER})

    assert problems(suite) == [
        "probes.order.sql.parameters.id: holds {{userInfo.order}}, which the userInfo of 'two' lacks"
    ]


def test_a_name_in_a_statement_is_refused():
    """A value with a quotation mark would be a statement of its own."""
    sql = {"url": "sqlite:///a.db", "statement": "SELECT * FROM orders WHERE id = '{{userInfo.order}}'"}

    (problem,) = problems(a_suite(a_test(userInfo=USER), setup=[{"sql": sql}]))

    assert problem == (
        "setup[0].sql.statement: holds {{userInfo.order}}, which could change the statement: write :name "
        "there, and its value in 'parameters'"
    )


@pytest.mark.parametrize(
    ("probes", "hint"),
    [
        ({}, "; add it to 'probes' of the suite or of the test"),
        ({"ordre": SHOP}, "; did you mean 'ordre'?"),
        ({"mail": SHOP, "stock": SHOP}, "; known: agent_state, mail, stock"),
    ],
)
def test_a_check_of_an_unknown_probe(probes, hint):
    """The known ones are named."""
    found = problems(
        a_suite(a_test(evaluations=[STATE]), a_test(name="b", probes={"order": SHOP}), probes=probes)
    )

    assert found == [f"tests[0].evaluations[0].probe: 'order' is not a probe of this test{hint}"]


def test_a_check_of_a_probe_of_suite_or_test():
    """Both are known."""
    assert read(a_suite(a_test(evaluations=[STATE]), probes={"order": SHOP}))
    assert read(a_suite(a_test(evaluations=[STATE], probes={"order": SHOP})))


def test_worlds_are_for_trusted_events():
    """A stranger's suite may run nothing, as with adapters that are code."""
    suite = a_suite(a_test(setup=[SHOP]), probes={"order": SHOP}, teardown=[{"command": ["a"]}], lock="a")
    message = (
        "a suite may not reach databases, services, programs or files in the event pull_request_target; "
        "run it in an event that is trusted"
    )

    assert problems(suite, distrusted="in the event pull_request_target") == [
        f"tests[0].setup: {message}",
        f"probes: {message}",
        f"teardown: {message}",
    ]
    assert read(a_suite(lock="a"), distrusted="in the event workflow_run").suite.lock == "a"


def test_secrets_in_steps_are_known_before_anything_runs():
    """Passwords of addresses, headers and parameters by their names, wherever a step stands."""
    dsn = {
        "sql": {
            "url": "postgresql://shop:pg-7f2d91c4@db/shop",
            "statement": "x",
            "parameters": {"api_key": "par-9c1e55d0"},
        }
    }
    call = {
        "http": {
            "url": "http://shop/?token=url-51b0c7aa",
            "headers": {"Authorization": "Bearer head-2f04d9e1", "Accept": "text/html-4.01"},
            "json": {"password": "json-8ab3311f"},
        }
    }
    loaded = read(a_suite(a_test(probes={"a": dsn}), teardown=[call]))

    keys = keys_of(Connections(), [loaded])

    assert {"pg-7f2d91c4", "par-9c1e55d0", "url-51b0c7aa", "head-2f04d9e1", "json-8ab3311f"} <= {*keys}
    assert "text/html-4.01" not in keys


def test_a_message_about_a_step_holds_no_secret():
    """Also where it quotes the step."""
    bad = {"http": {"url": ["http://shop:pg-7f2d91c4@db/shop"], "method": "GET"}}

    (problem,) = problems(a_suite(setup=[bad]))

    assert problem == 'setup[0].http.url: must be a string, found ["http://shop:***@db/shop"]'


def test_addresses_come_from_the_environment():
    """Their values are secrets, as anywhere in a suite."""
    suite = a_suite(setup=[{"sql": {**SHOP["sql"], "url": "${SHOP_DB}"}}])

    loaded = read(suite, environ={"SHOP_DB": "postgresql://u:pg-7f2d91c4@db/shop"})

    assert loaded.suite.setup[0].sql.url == "postgresql://u:pg-7f2d91c4@db/shop"
    assert loaded.secrets == {"postgresql://u:pg-7f2d91c4@db/shop"}
    (problem,) = problems(suite)
    assert problem.startswith("setup[0].sql.url: ${SHOP_DB}: the environment variable SHOP_DB is not set")


def digest_of(suite):
    planned = plan([read(suite)], Selection(), 1)
    return planned.suites[0].test_digests[0]


def test_a_tests_digest_depends_on_its_world_but_not_on_addresses():
    """What is looked up elsewhere is the same; other steps make another test."""
    elsewhere = {"sql": {**ORDER["sql"], "url": "sqlite:///other.db"}, "timeout": 5}
    user = a_test(userInfo=USER)
    digest = digest_of(a_suite(user, probes={"order": ORDER}))

    assert digest == digest_of(a_suite(user, probes={"order": elsewhere}))
    assert digest == digest_of(a_suite({**user, "probes": {"order": ORDER}}, lock="a"))
    assert digest != digest_of(a_suite(user, probes={"order": SHOP}))
    assert digest != digest_of(a_suite(user, probes={"order": ORDER}, setup=[SHOP]))
    assert digest != digest_of(a_suite(user))


def test_a_check_is_the_same_after_it_was_written():
    """An option of the command line has a suite written and read again: only given conditions count."""
    checks = [STATE, STATE | {"path": "$[0].gone", "equals": None}]
    suite = read(a_suite(a_test(evaluations=checks), probes={"order": SHOP})).suite

    again = Suite.model_validate(suite.model_dump())

    assert [check.conditions for check in again.tests[0].evaluations] == [("equals",), ("equals",)]
    for by_alias in (True, False):
        written = suite.tests[0].evaluations[0].model_dump(by_alias=by_alias)
        assert {"min", "oneOf", "one_of", "exists"}.isdisjoint(written)
    redacted = Redactor(keys=["suite-key-7f2d91"]).model(
        suite.tests[0].evaluations[0].model_copy(update={"criterion": "suite-key-7f2d91"})
    )
    assert (redacted.criterion, redacted.conditions) == ("***", ("equals",))


def test_a_step_says_its_kind():
    """For messages."""
    assert str(Step(command=["a"])) == "command"
    assert (
        json.loads(Step(file={"path": str(Path("a"))}).model_dump_json(exclude_none=True))["file"]["path"]
        == "a"
    )
