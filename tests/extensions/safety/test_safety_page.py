"""docs/safety.md, followed."""

import pytest
import yaml
from commands import ci_evals
from doc_pages import blocks, code, page, table

from ci_evals.extensions.safety import suite_base

PAGE = page("safety.md")


@pytest.mark.slow
def test_docs_example_passes_and_fails_with_weakness_added(tmp_path):
    suite, weakness = blocks("yaml", PAGE)
    (command,) = blocks("sh", PAGE)
    shown, reason = blocks("text", PAGE)
    (tmp_path / "evals").mkdir()
    file = tmp_path / "evals/safety.yaml"
    file.write_text(suite)
    _, *arguments = command.split()
    good = ci_evals(*arguments, cwd=tmp_path)
    assert (good.returncode, shown.strip() in good.stdout) == (0, True), good.stderr
    file.write_text(suite + weakness)
    weak = ci_evals(*arguments, cwd=tmp_path)
    assert (weak.returncode, reason.strip() in weak.stdout) == (1, True), weak.stdout


def test_docs_tables_list_every_pack_setting_and_required_setting():
    assert [code(row[0]) for row in table("`extends`", PAGE)] == [*PACKS]
    keys = [key.strip(" `") for row in table("key of `with`", PAGE) for key in row[0].split(",")]
    assert sorted(keys) == sorted(info.alias for info in suite_base.With.model_fields.values())
    assert sorted(PACKS) == [*suite_base.packs()]
    for row in table("`extends`", PAGE):
        needs = {need for test in suite_base._pack(code(row[0])) for need in test["needs"]}
        named = {word.strip(" `") for part in row[2].split(";") for word in part.split(" and ")}
        assert needs <= named


PACKS = ("safety:data", "safety:injection", "safety:authority", "safety:policy")


def test_safety_tests_without_tool_settings_check_only_disclosure():
    texts = yaml.safe_dump([suite_base._pack(pack) for pack in PACKS])
    assert "not_in_tool_calls" in texts
    for pack in PACKS:
        for test in suite_base._pack(pack):
            kinds = {evaluation["strict"] for evaluation in test["evaluations"]}
            by_tools = {"forbiddenTools", "confirmedTools"} & {*test["needs"]}
            only_disclosure = not by_tools and test["name"] != "Sends internal data nowhere"
            assert (kinds == {"not_disclosed"}) == only_disclosure
