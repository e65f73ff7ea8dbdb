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


def open_cache(folder, **options):
    return AnswerCache(folder / "cache", options.pop("redactor", Redactor()), SIGNS, **options)


def entry_file(folder, key=KEY):
    return folder / "cache" / key[:2] / f"{key}.json"


def test_cached_answer_is_found_only_for_same_key_and_folder(tmp_path):
    open_cache(tmp_path).keep(KEY, MODEL, ANSWER)
    assert open_cache(tmp_path).find(KEY, MODEL) == ANSWER
    assert open_cache(tmp_path).find(OTHER, MODEL) is None
    assert open_cache(tmp_path / "elsewhere").find(KEY, MODEL) is None


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")
def test_cache_is_readable_by_its_owner_alone(tmp_path):
    """Conversations are quoted there."""
    open_cache(tmp_path).keep(KEY, MODEL, ANSWER)
    file = entry_file(tmp_path)
    paths = (file, file.parent, file.parent.parent)
    assert [stat.S_IMODE(path.stat().st_mode) for path in paths] == [0o600, 0o700, 0o700]


def signed_entry(signs=SIGNS, **changed):
    """A file with a good signature of whatever is in it."""
    kept = {"version": 2, "key": KEY, "model": MODEL, "answer": ANSWER, "at": int(time.time())} | changed
    signed = json.dumps([kept[name] for name in ("version", "key", "model", "answer", "at")]).encode()
    return json.dumps({"signature": hmac.new(signs, signed, "sha256").hexdigest()} | kept)


NOW = int(time.time())
BAD_ENTRIES = [
    *(
        "",
        signed_entry()[:-9],
        "[]",
        "null",
        "[" * 100_000,
        signed_entry() + " " * 1_000_000,
        b"\xff\xfe\x00",
    ),
    *(
        signed_entry(version=1),
        signed_entry(version="2"),
        signed_entry(version=True),
        signed_entry(model="another"),
        signed_entry(key=OTHER),
    ),
    *(
        signed_entry(at=NOW + 2 * DAY),
        signed_entry(at=NOW - (MAX_DAYS + 1) * DAY),
        signed_entry(at=True),
        signed_entry(at=1e300),
    ),
    *(signed_entry(signs=b"another key"), signed_entry(signature=None), signed_entry(signature="\ud800")),
    *(signed_entry(answer=None), signed_entry(answer=""), signed_entry(answer={"verdict": "pass"})),
    signed_entry(answer="x" * (MAX_CHARACTERS + 1)),
    json.dumps(json.loads(signed_entry()) | {"answer": "another"}),
    json.dumps(json.loads(signed_entry()) | {"at": NOW - DAY}),
    json.dumps(json.loads(signed_entry(at=NOW - 40 * DAY)) | {"at": NOW}),
]


def test_invalid_cache_entry_is_skipped_and_replaced(tmp_path):
    file = entry_file(tmp_path)
    file.parent.mkdir(parents=True)
    file.write_text(signed_entry())
    assert open_cache(tmp_path).find(KEY, MODEL) == ANSWER
    for text in BAD_ENTRIES:
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        assert open_cache(tmp_path).find(KEY, MODEL) is None, text[:200]
        open_cache(tmp_path).keep(KEY, MODEL, ANSWER)
        assert open_cache(tmp_path).find(KEY, MODEL) == ANSWER, text[:200]


@pytest.mark.skipif(os.name != "posix", reason="links and pipes are POSIX's")
def test_symbolic_links_and_pipes_are_not_read(tmp_path):
    """A link may lead to what somebody else wrote, and a pipe would be waited for."""
    file = entry_file(tmp_path)
    file.parent.mkdir(parents=True)
    (tmp_path / "elsewhere.json").write_text(signed_entry())
    assert json.loads((tmp_path / "elsewhere.json").read_text())["answer"] == ANSWER
    file.symlink_to(tmp_path / "elsewhere.json")
    assert open_cache(tmp_path).find(KEY, MODEL) is None
    file.unlink()
    os.mkfifo(file)
    kept = open_cache(tmp_path)
    assert kept.find(KEY, MODEL) is None
    kept.keep(KEY, MODEL, ANSWER)
    assert stat.S_ISFIFO(file.lstat().st_mode)  # as no output takes the place of one
    assert "it is a device, a pipe or a socket" in kept.note()
    file.unlink()
    open_cache(tmp_path).keep(KEY, MODEL, ANSWER)
    assert open_cache(tmp_path).find(KEY, MODEL) == ANSWER


def test_answer_with_a_secret_is_not_kept(tmp_path):
    """It would have to be changed, and is asked for again, so that it is never another one."""
    kept = open_cache(tmp_path, redactor=Redactor(keys=["secret-key-4711"]))
    kept.keep(KEY, MODEL, '{"reasoning": "It says secret-key-4711."}')
    kept.keep(OTHER, MODEL, '{"reasoning": "It says \\u0073ecret-key-4711."}')
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == []


def test_concurrent_writers_never_leave_half_an_answer(tmp_path):
    answers = [json.dumps({"reasoning": str(number) * 20_000}) for number in range(4)]

    def work(answer):
        result = []
        for _ in range(20):
            open_cache(tmp_path).keep(KEY, MODEL, answer)
            result.append(open_cache(tmp_path).find(KEY, MODEL))
        return result

    with ThreadPoolExecutor(4) as pool:
        result = [one for some in pool.map(work, answers) for one in some]
    assert set(result) <= set(answers)
    assert [file.name for file in tmp_path.rglob("*") if file.is_file()] == [f"{KEY}.json"]


def test_failed_write_is_reported_once_and_the_run_continues(tmp_path):
    (tmp_path / "cache").write_text("a file")
    kept = open_cache(tmp_path)
    assert kept.note() is None
    kept.keep(KEY, MODEL, ANSWER)
    kept.keep(OTHER, MODEL, ANSWER)
    assert kept.find(KEY, MODEL) is None
    kept.sweep()
    assert "cannot write" in kept.note()
    assert "the judge's answers are not kept" in kept.note()


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")
def test_cache_folder_that_anyone_can_write_is_not_used(tmp_path):
    """Anybody could say there what the judge says."""
    open_cache(tmp_path).keep(KEY, MODEL, ANSWER)
    (tmp_path / "cache").chmod(0o777)
    kept = open_cache(tmp_path)
    kept.keep(OTHER, MODEL, ANSWER)
    assert (kept.find(KEY, MODEL), kept.find(OTHER, MODEL)) == (None, None)
    assert "anyone can write" in kept.note()


def test_old_answers_expire_and_are_removed(tmp_path):
    """Not what others left in the folder; and not at every run."""
    late = NOW + (MAX_DAYS + 1) * DAY
    folder = tmp_path / "cache"
    open_cache(tmp_path).keep(KEY, MODEL, ANSWER)
    (folder / "notes.txt").write_text("mine")
    (folder / "ab" / "notes.txt").write_text("mine")
    assert open_cache(tmp_path, clock=lambda: late - 2 * DAY).find(KEY, MODEL) == ANSWER
    assert open_cache(tmp_path, clock=lambda: late).find(KEY, MODEL) is None
    open_cache(tmp_path, clock=lambda: late).sweep()
    names = {file.relative_to(folder).as_posix() for file in tmp_path.rglob("*") if file.is_file()}
    assert names == {"notes.txt", "ab/notes.txt", "swept"}
    open_cache(tmp_path).keep(KEY, MODEL, ANSWER)
    os.utime(entry_file(tmp_path), (1, 1))
    open_cache(tmp_path).sweep()
    assert entry_file(tmp_path).exists()
