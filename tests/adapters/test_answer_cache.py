"""The cache of answers: what was accepted comes back word for word, and nothing else ever does."""

import hmac
import json
import os
import stat
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from ci_evals.adapters.answer_cache import MAX_CHARACTERS, MAX_DAYS, AnswerCache
from ci_evals.support.redaction import Redactor

SIGNS, MODEL = b"signs", "judge"
KEY, OTHER = "ab" * 32, "cd" * 32
ANSWER = '{"reasoning": "So it is. \\u00e9 \ud83d", "verdict": "pass"}'
DAY = 86_400


def cache(folder, **options):
    return AnswerCache(folder / "cache", options.pop("redactor", Redactor()), SIGNS, **options)


def file_of(folder, key=KEY):
    return folder / "cache" / key[:2] / f"{key}.json"


def test_an_answer_is_given_again(tmp_path):
    """Also by another process that knows the folder, and to nobody who asked something else."""
    cache(tmp_path).keep(KEY, MODEL, ANSWER)
    assert cache(tmp_path).find(KEY, MODEL) == ANSWER
    assert cache(tmp_path).find(OTHER, MODEL) is None
    assert cache(tmp_path / "elsewhere").find(KEY, MODEL) is None


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")
def test_it_is_its_owners_alone(tmp_path):
    """Conversations are quoted there."""
    cache(tmp_path).keep(KEY, MODEL, ANSWER)
    file = file_of(tmp_path)
    assert [stat.S_IMODE(place.stat().st_mode) for place in (file, file.parent, file.parent.parent)] == [
        0o600,
        0o700,
        0o700,
    ]


def entry(signs=SIGNS, **changed):
    """A file with a good signature of whatever is in it."""
    kept = {"version": 2, "key": KEY, "model": MODEL, "answer": ANSWER, "at": int(time.time())} | changed
    signed = json.dumps([kept[name] for name in ("version", "key", "model", "answer", "at")]).encode()
    return json.dumps({"signature": hmac.new(signs, signed, "sha256").hexdigest()} | kept)


def test_entry_with_a_valid_signature_is_used(tmp_path):
    """As the ones below would be, if nothing were wrong with them."""
    file = file_of(tmp_path)
    file.parent.mkdir(parents=True)
    file.write_text(entry())
    assert cache(tmp_path).find(KEY, MODEL) == ANSWER


@pytest.mark.parametrize(
    "text",
    [
        "",
        entry()[:-9],
        "[]",
        "null",
        "[" * 100_000,
        entry(version=1),
        entry(version="2"),
        entry(version=True),
        entry(model="another"),
        entry(at=int(time.time()) + 2 * DAY),
        entry(at=int(time.time()) - (MAX_DAYS + 1) * DAY),
        entry(at=True),
        entry(at=1e300),
        entry(signs=b"another key"),
        entry(signature=None),
        entry(signature="\ud800"),
        entry(key=OTHER),
        entry(answer=None),
        entry(answer=""),
        entry(answer={"verdict": "pass"}),
        entry(answer="x" * (MAX_CHARACTERS + 1)),
        entry() + " " * 1_000_000,
        json.dumps(json.loads(entry()) | {"answer": "another"}),
        json.dumps(json.loads(entry()) | {"at": int(time.time()) - DAY}),
        json.dumps(json.loads(entry(at=int(time.time()) - 40 * DAY)) | {"at": int(time.time())}),
        b"\xff\xfe\x00",
    ],
    ids=lambda _: "entry",
)
def test_damaged_or_foreign_entries_are_skipped(tmp_path, text):
    """And written anew."""
    file = file_of(tmp_path)
    file.parent.mkdir(parents=True)
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    assert cache(tmp_path).find(KEY, MODEL) is None
    cache(tmp_path).keep(KEY, MODEL, ANSWER)
    assert cache(tmp_path).find(KEY, MODEL) == ANSWER


@pytest.mark.skipif(os.name != "posix", reason="links and pipes are POSIX's")
def test_neither_links_nor_pipes_are_followed(tmp_path):
    """A link may lead to what somebody else wrote, and a pipe would be waited for."""
    file = file_of(tmp_path)
    file.parent.mkdir(parents=True)
    (tmp_path / "elsewhere.json").write_text(entry())
    assert json.loads((tmp_path / "elsewhere.json").read_text())["answer"] == ANSWER
    file.symlink_to(tmp_path / "elsewhere.json")
    assert cache(tmp_path).find(KEY, MODEL) is None
    file.unlink()
    os.mkfifo(file)
    kept = cache(tmp_path)
    assert kept.find(KEY, MODEL) is None
    kept.keep(KEY, MODEL, ANSWER)
    assert stat.S_ISFIFO(file.lstat().st_mode)  # as no output takes the place of one
    assert "it is a device, a pipe or a socket" in kept.note()
    file.unlink()
    cache(tmp_path).keep(KEY, MODEL, ANSWER)
    assert cache(tmp_path).find(KEY, MODEL) == ANSWER


def test_a_secret_is_not_kept(tmp_path):
    """An answer that would have to be changed is asked for again, so that it is never another one."""
    kept = cache(tmp_path, redactor=Redactor(keys=["secret-key-4711"]))
    kept.keep(KEY, MODEL, '{"reasoning": "It says secret-key-4711."}')
    kept.keep(OTHER, MODEL, '{"reasoning": "It says \\u0073ecret-key-4711."}')
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == []


def test_many_may_write_at_once(tmp_path):
    """Whoever reads meanwhile finds a whole answer or none."""
    answers = [json.dumps({"reasoning": str(number) * 20_000}) for number in range(4)]

    def work(answer):
        found = []
        for _ in range(20):
            cache(tmp_path).keep(KEY, MODEL, answer)
            found.append(cache(tmp_path).find(KEY, MODEL))
        return found

    with ThreadPoolExecutor(4) as pool:
        found = [one for some in pool.map(work, answers) for one in some]
    assert set(found) <= set(answers)
    assert [file.name for file in tmp_path.rglob("*") if file.is_file()] == [f"{KEY}.json"]


def test_failed_write_is_reported(tmp_path):
    """Once, and the run goes on without."""
    (tmp_path / "cache").write_text("a file")
    kept = cache(tmp_path)
    assert kept.note() is None
    kept.keep(KEY, MODEL, ANSWER)
    kept.keep(OTHER, MODEL, ANSWER)
    assert kept.find(KEY, MODEL) is None
    kept.sweep()
    assert "cannot write" in kept.note()
    assert "the judge's answers are not kept" in kept.note()


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")
def test_a_folder_of_everybodys_is_not_used(tmp_path):
    """Anybody could say there what the judge says."""
    cache(tmp_path).keep(KEY, MODEL, ANSWER)
    (tmp_path / "cache").chmod(0o777)
    kept = cache(tmp_path)
    kept.keep(OTHER, MODEL, ANSWER)
    assert (kept.find(KEY, MODEL), kept.find(OTHER, MODEL)) == (None, None)
    assert "anyone can write" in kept.note()


def test_old_answers_are_asked_for_again_and_taken_away(tmp_path):
    """Not what others left in the folder; and not at every run."""
    late = int(time.time()) + (MAX_DAYS + 1) * DAY
    cache(tmp_path).keep(KEY, MODEL, ANSWER)
    (tmp_path / "cache" / "notes.txt").write_text("mine")
    (tmp_path / "cache" / "ab" / "notes.txt").write_text("mine")
    assert cache(tmp_path, clock=lambda: late - 2 * DAY).find(KEY, MODEL) == ANSWER
    assert cache(tmp_path, clock=lambda: late).find(KEY, MODEL) is None
    cache(tmp_path, clock=lambda: late).sweep()
    names = {
        file.relative_to(tmp_path / "cache").as_posix() for file in tmp_path.rglob("*") if file.is_file()
    }
    assert names == {"notes.txt", "ab/notes.txt", "swept"}
    cache(tmp_path).keep(KEY, MODEL, ANSWER)
    os.utime(file_of(tmp_path), (1, 1))
    cache(tmp_path).sweep()
    assert file_of(tmp_path).exists()
