"""Setup, probes and teardown in suites: how they are read, and what is wrong with them, each at its place."""

import json
from pathlib import Path

from each_row import each_row
from jsonschema import Draft202012Validator
from test_parse import make_suite, make_test, problems, read

from ci_evals.domain.suite import Suite, suite_schema
from ci_evals.domain.world import Step
from ci_evals.planning.selection import Selection, plan
from ci_evals.support.redaction import Redactor
from ci_evals.wiring.connections import Connections, keys_of

SHOP = {"sql": {"url": "sqlite:///shop.db", "statement": "SELECT * FROM orders WHERE id = :id"}}
ORDER = {**SHOP, "sql": {**SHOP["sql"], "parameters": {"id": "{{userInfo.order}}"}}}
STATE = {"criterion": "It is refunded", "strict": "state", "probe": "order", "equals": "refunded"}
USER = {"order": "A1", "plan": {"name": "gold"}, "none": None, "pets": ["cat"]}


def test_test_steps_follow_suite_steps_and_test_probes_override_suite_probes():
    probes = {"order": {"file": {"path": "order.json", "format": "json"}}, "mail": {"python": "a.b:C.d"}}
    steps = {"setup": [{"command": ["two"]}], "teardown": [{"command": ["four"]}]}
    own = make_test(name="own", probes=probes, lock="shop 2", **steps)
    first, last = {"command": ["one"], "timeout": 5}, {"command": ["three"]}
    probes = {"order": {"http": {"url": "http://shop/1"}}}
    data = make_suite(make_test(), own, setup=[first], probes=probes, teardown=[last], lock="shop")
    suite = read(data).suite
    plain, both = map(suite.world_of, suite.tests)

    assert [step.command for step in (*plain.setup, *plain.teardown)] == [["one"], ["three"]]
    assert plain.setup[0].timeout == 5
    assert plain.probes["order"].http.method == "GET"
    assert [step.command[0] for step in (*both.setup, *both.teardown)] == ["one", "two", "three", "four"]
    assert [*both.probes] == ["order", "mail"]
    assert both.probes["order"].file.format == "json"
    assert [suite.lock_of(test) for test in suite.tests] == ["shop", "shop 2"]
    assert not read(make_suite()).suite.world_of(read(make_suite()).suite.tests[0])


KINDS = "needs exactly one of http, sql, command, python, file"


@each_row(("step", "problem"), [
    ({}, f": {KINDS}, found none"),
    ({**SHOP, "command": ["a"]}, f": {KINDS}, found sql and command"),
    ({"htp": {}}, ".htp: unknown key; did you mean 'http'?"),
    ({"http": {"method": "FETCH", "url": "a"}},
     ".http.method: 'FETCH' is not one of GET, POST, PUT, PATCH, DELETE"),
    ({"http": {"adress": "a"}}, ".http.url: is missing"),
    ({"sql": {"url": " ", "statement": "x"}}, ".sql.url: must not be empty"),
    ({"command": "rm -rf"}, '.command: must be a list, found "rm -rf"'),
    ({"command": []}, ".command: needs at least one item"),
    ({"python": "shop.reset"}, ".python: 'shop.reset' is not of the form module:attribute"),
    ({"python": "shop.py:reset()"}, ".python: 'shop.py:reset()' is not of the form module:attribute"),
    ({"file": {"path": "a", "format": "yaml"}}, ".file.format: 'yaml' is not one of text, json"),
    ({"command": ["a"], "timeout": 0}, ".timeout: 0 is not greater than 0"),
])  # fmt: skip
def test_malformed_step_is_refused(step, problem):
    assert f"setup[0]{problem}" in problems(make_suite(setup=[step]))


def test_malformed_probe_of_suite_or_test_is_refused_by_its_name():
    test = make_test(probes={"a": {"file": {}}})
    result = problems(make_suite(test, probes={"b": 1, " ": {"command": ["a"]}}))
    assert "tests[0].probes.a.file.path: is missing" in result
    assert "probes.b: must be an object, found 1" in result
    assert any("must not be empty" in problem for problem in result)


UNKNOWN = "which is unknown; available: userInfo, trial.id, session.id"


@each_row(("text", "complaint"), [
    ("{{userinfo.order}}", UNKNOWN),
    ("a {{order}}", UNKNOWN),
    ("{{userInfo.ordr}}", "which the userInfo of 'one' lacks"),
    ("{{userInfo.plan.price}}", "which the userInfo of 'one' lacks"),
    ("{{userInfo.pets.1}}", "which the userInfo of 'one' lacks"),
    ("{{session.id}}",
     "which is known only once the agent has opened a session; use it in probes and teardown"),
])  # fmt: skip
def test_unknown_placeholder_in_a_step_is_refused(text, complaint):
    name = text[text.index("{{") : text.index("}}") + 2]
    result = problems(make_suite(make_test(userInfo=USER), setup=[{"command": ["reset", text]}]))
    assert result == [f"setup[0].command[1]: holds {name}, {complaint}"]


def test_placeholders_must_be_known_in_all_tests_and_are_refused_in_sql_statements():
    text = "{{userInfo}} {{ userInfo.plan.name }} {{userInfo.none}} {{userInfo.pets.0}} {{trial.id}}"
    session = "{{session.id}}"
    after = {"probes": {"a": {"file": {"path": session}}}, "teardown": [{"command": [session]}]}
    known = make_test(userInfo=USER, setup=[{"command": [text]}], **after)
    assert read(make_suite(known)).suite.tests[0].setup
    result = problems(make_suite(make_test(userInfo=USER), make_test(name="two"), probes={"order": ORDER}))
    lacking = "which the userInfo of 'two' lacks"
    assert result == [f"probes.order.sql.parameters.id: holds {{{{userInfo.order}}}}, {lacking}"]
    sql = {"url": "sqlite:///a.db", "statement": "SELECT * FROM orders WHERE id = '{{userInfo.order}}'"}
    (problem,) = problems(make_suite(make_test(userInfo=USER), setup=[{"sql": sql}]))
    assert problem == (
        "setup[0].sql.statement: holds {{userInfo.order}}, which could change the statement: write :name "
        "there, and its value in 'parameters'"
    )


@each_row(("probes", "hint"), [
    ({}, "; add it to 'probes' of the suite or of the test"),
    ({"ordre": SHOP}, "; did you mean 'ordre'?"),
    ({"mail": SHOP, "stock": SHOP}, "; known: agent_state, mail, stock"),
])  # fmt: skip
def test_check_of_an_unknown_probe_is_refused_with_the_known_ones(probes, hint):
    tests = make_test(evaluations=[STATE]), make_test(name="b", probes={"order": SHOP})
    problem = f"tests[0].evaluations[0].probe: 'order' is not a probe of this test{hint}"
    assert problems(make_suite(*tests, probes=probes)) == [problem]


def test_steps_and_probes_are_refused_in_untrusted_events():
    test, teardown = make_test(setup=[SHOP]), [{"command": ["a"]}]
    suite = make_suite(test, probes={"order": SHOP}, teardown=teardown, lock="a")
    message = (
        "a suite may not reach databases, services, programs or files in the event pull_request_target; "
        "run it in an event that is trusted"
    )
    result = problems(suite, distrusted="in the event pull_request_target")
    assert result == [f"{path}: {message}" for path in ("tests[0].setup", "probes", "teardown")]
    assert read(make_suite(lock="a"), distrusted="in the event workflow_run").suite.lock == "a"


def test_secrets_of_steps_are_known_before_the_run_and_in_no_message():
    bad = {"http": {"url": ["http://shop:pg-7f2d91c4@db/shop"], "method": "GET"}}
    (problem,) = problems(make_suite(setup=[bad]))
    assert problem == 'setup[0].http.url: must be a string, found ["http://shop:***@db/shop"]'
    suite = make_suite(setup=[{"sql": {**SHOP["sql"], "url": "${SHOP_DB}"}}])
    url = "postgresql://u:pg-7f2d91c4@db/shop"
    loaded = read(suite, environ={"SHOP_DB": url})
    assert loaded.suite.setup[0].sql.url == url
    assert loaded.secrets == {url}
    (problem,) = problems(suite)
    assert problem.startswith("setup[0].sql.url: ${SHOP_DB}: the environment variable SHOP_DB is not set")
    url = "postgresql://shop:pg-7f2d91c4@db/shop"
    sql = {"url": url, "statement": "x", "parameters": {"api_key": "par-9c1e55d0"}}
    http = {
        "url": "http://shop/?token=url-51b0c7aa",
        "headers": {"Authorization": "Bearer head-2f04d9e1", "Accept": "text/html-4.01"},
        "json": {"password": "json-8ab3311f"},
    }
    loaded = read(make_suite(make_test(probes={"a": {"sql": sql}}), teardown=[{"http": http}]))
    keys = {*keys_of(Connections(), [loaded])}
    assert {"pg-7f2d91c4", "par-9c1e55d0", "url-51b0c7aa", "head-2f04d9e1", "json-8ab3311f"} <= keys
    assert "text/html-4.01" not in keys


def digest_of(suite):
    planned = plan([read(suite)], Selection(), 1)
    return planned.suites[0].test_digests[0]


def test_digest_of_test_depends_on_steps_but_not_on_url_timeout_or_lock():
    elsewhere = {"sql": {**ORDER["sql"], "url": "sqlite:///other.db"}, "timeout": 5}
    user = make_test(userInfo=USER)
    digest = digest_of(make_suite(user, probes={"order": ORDER}))
    assert digest == digest_of(make_suite(user, probes={"order": elsewhere}))
    assert digest == digest_of(make_suite({**user, "probes": {"order": ORDER}}, lock="a"))
    assert digest != digest_of(make_suite(user, probes={"order": SHOP}))
    assert digest != digest_of(make_suite(user, probes={"order": ORDER}, setup=[SHOP]))
    assert digest != digest_of(make_suite(user))


def test_state_check_of_known_probe_survives_round_trip_with_only_its_conditions():
    """An option of the command line has a suite written and read again."""
    assert read(make_suite(make_test(evaluations=[STATE]), probes={"order": SHOP}))
    assert read(make_suite(make_test(evaluations=[STATE], probes={"order": SHOP})))
    checks = [STATE, STATE | {"path": "$[0].gone", "equals": None}]
    suite = read(make_suite(make_test(evaluations=checks), probes={"order": SHOP})).suite
    again = Suite.model_validate(suite.model_dump())
    assert [check.conditions for check in again.tests[0].evaluations] == [("equals",), ("equals",)]
    check = suite.tests[0].evaluations[0]
    for by_alias in (True, False):
        written = check.model_dump(by_alias=by_alias)
        assert {"min", "oneOf", "one_of", "exists"}.isdisjoint(written)
    redactor = Redactor(keys=["suite-key-7f2d91"])
    redacted = redactor.model(check.model_copy(update={"criterion": "suite-key-7f2d91"}))
    assert (redacted.criterion, redacted.conditions) == ("***", ("equals",))


def test_every_kind_of_step_is_read_named_written_and_valid_under_the_schema():
    """Comments are allowed wherever the format has objects."""
    request = {"method": "POST", "url": "http://shop", "headers": {"x-plan": "a"}, "json": {"x-a": 1}}
    steps = [
        {"http": request | {"x-why": 1}},
        {"sql": {**SHOP["sql"], "parameters": {"id": [1]}, "x-why": ""}, "x-why": ""},
        {"command": ["reset", "--all"]},
        {"python": "shop.tools:reset"},
        {"file": {"path": "a.txt", "x-why": ""}},
    ]
    probes = {"x-a": steps[1], "b": steps[0]}
    suite = make_suite(make_test(setup=steps, lock="a"), setup=steps, teardown=steps, probes=probes)
    loaded = read(suite).suite
    Draft202012Validator(suite_schema()).validate(suite)
    assert [str(step) for step in loaded.setup] == ["http", "sql", "command", "python", "file"]
    assert loaded.setup[0].http.headers == {"x-plan": "a"}
    assert loaded.setup[0].http.json_ == {"x-a": 1}
    assert [*loaded.probes] == ["x-a", "b"]
    assert str(Step(command=["a"])) == "command"
    written = json.loads(Step(file={"path": str(Path("a"))}).model_dump_json(exclude_none=True))
    assert written["file"]["path"] == "a"
