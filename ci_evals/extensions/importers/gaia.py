"""GAIA: questions with one right answer each, as the data set's `metadata.jsonl` has them.

The fields are those of the data set's card (gaia-benchmark/GAIA): `task_id`, `Question`, `Level`, `Final
answer` (`?` in the test split, whose answers are private), `file_name`. `Annotator Metadata` is left out.
"""

from ci_evals.domain.errors import UsageError
from ci_evals.extension_support.drafting.draft import SAYS_ITS_LINES, fixed
from ci_evals.extensions.importers.imported import ImportedSuite
from ci_evals.extensions.importers.importer import Importer
from ci_evals.extensions.importers.other_files import OtherFiles
from ci_evals.extensions.importers.records import ImportedRecord, records
from ci_evals.support.json_text import JsonObject

NEEDS_FILE = "needs-file"
_PRIVATE = "?"
_MOST_NAMES = 50
_READ = frozenset({"task_id", "Question", "Level", "Final answer", "file_name"})


def read(text: str, file: str, _files: OtherFiles | None = None) -> ImportedSuite:
    """One test for each question that has an answer."""
    imported = ImportedSuite("GAIA")
    unanswered = 0
    with_file: list[str] = []
    questions = records(text, file, imported)
    for record in questions:
        with imported.leaving_out():
            question, answer = record.text("Question"), record.text("Final answer")
            if not question:
                raise record.fault("Question", "is missing: is this GAIA's metadata.jsonl?")
            if answer in {"", _PRIVATE}:
                unanswered += 1
                continue
            test = _test(record, question, answer)
            for key in record.values:
                if key not in _READ:
                    imported.leave(record.location(), key)
            imported.add(record.text("task_id") or question, test, record.place())
            if NEEDS_FILE in test["tags"]:
                with_file.append(imported.tests[-1]["name"])
    if unanswered and not imported.tests and not imported.left_out:
        raise UsageError(
            f"{file}: no question has an answer: this is the test split; take the validation split"
        )
    if unanswered:
        imported.notes.append(f"{unanswered} of {len(questions)} questions have no answer and are left out")
    if with_file:
        more = len(with_file) - _MOST_NAMES
        names = ", ".join(with_file[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
        imported.notes.append(
            f"{len(with_file)} of {len(questions)} questions need a file, which a suite cannot send "
            f"(tag {NEEDS_FILE}): {names}"
        )
    return imported


def _test(record: ImportedRecord, question: str, answer: str) -> JsonObject:
    test: JsonObject = {"guidelines": SAYS_ITS_LINES, "turns": [fixed(question)], "maxTurns": 1}
    test["evaluations"] = [
        {
            "criterion": "The final answer is right",
            "strict": "answer_matches",
            "expected": answer,
            "match": "gaia",
            "category": "accuracy",
        }
    ]
    test["tags"] = []
    if level := record.text("Level"):
        test["difficulty"] = f"level {level}"
        test["tags"].append(f"level-{level}")
    if file_name := record.text("file_name"):
        test["tags"].append(NEEDS_FILE)
        test["x-file"] = file_name
    test["tags"] = test["tags"] or ["gaia"]
    if task_id := record.text("task_id"):
        test["x-id"] = task_id
    return test


IMPORTER = Importer("gaia", "the questions of the GAIA benchmark (metadata.jsonl)", read)
