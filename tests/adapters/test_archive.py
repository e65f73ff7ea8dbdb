"""One file out of a downloaded artifact, whatever the archive says of itself."""

import contextlib
import io
import stat
import struct
import zipfile
import zlib

import pytest
from github_api import zip_of
from hypothesis import given, settings
from hypothesis import strategies as st
from processor_time import at_most
from property_examples import examples

from ci_evals.adapters.github import archive
from ci_evals.adapters.github.archive import ArchiveError

NAME = "_results.json"
JSON = b'{"schemaVersion": 1}'


def read(data: bytes) -> bytes:
    return archive.read(io.BytesIO(data), NAME)


def archive_error(data: bytes) -> str:
    with pytest.raises(ArchiveError) as caught:
        read(data)
    message = str(caught.value)
    assert message.isprintable()
    return message


def zip_with(*entries: tuple[zipfile.ZipInfo | str, bytes]) -> bytes:
    """A zip file of these entries, in this order, the same name as often as it is given."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as file:
        for name, content in entries:
            entry = zipfile.ZipInfo(name) if isinstance(name, str) else name
            file.writestr(entry, content)
    return data.getvalue()


def with_header_value(data: bytes, offset: int, form: str, value: int) -> bytes:
    """`data` with another value in both headers of its one entry; `offset` is that in the local one."""
    out = bytearray(data)
    struct.pack_into(form, out, data.index(b"PK\x03\x04") + offset, value)
    struct.pack_into(form, out, data.index(b"PK\x01\x02") + offset + 2, value)
    return bytes(out)


def test_least_nested_results_file_is_read_from_zip_or_plain_download():
    assert read(zip_of({NAME: JSON})) == JSON
    folder = {"summary.md": "# x", f"Refunds/2026/{NAME}": "{}", f"A/{NAME}": "{}", NAME: JSON}
    assert read(zip_of(folder)) == JSON
    assert read(zip_of({f"results/{NAME}": JSON, f"results/Refunds/2026/{NAME}": "{}"})) == JSON
    # The upload step can do so. What it says of its type does not matter.
    for text in (JSON, b"\xef\xbb\xbf" + JSON, b"\n  " + JSON):
        assert read(text) == text
    # A packer that does not know the size in advance uses Zip64; a comment stands behind the end.
    data = io.BytesIO()
    packed = zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED)
    with packed as file, file.open(NAME, "w", force_zip64=True) as entry:
        entry.write(JSON)
    assert read(data.getvalue()) == JSON
    data = io.BytesIO(zip_of({NAME: JSON}))
    with zipfile.ZipFile(data, "a") as file:
        file.comment = b"made by a packer" * 1000
    assert read(data.getvalue()) == JSON


def test_missing_or_ambiguous_results_file_names_what_to_upload():
    others = {"junit.xml": "<x/>", "old_results.json": "{}", "_results.json.bak": "{}"}
    message = "holds no file _results.json; upload the one in the output folder"
    for files in ({}, others, {"_results.json/": ""}, {"all.zip": zip_of({NAME: JSON})}):
        assert archive_error(zip_of(files)) == message
    # The suites' own files without that of the run, and one name twice.
    message = "holds 2 files _results.json side by side; upload only the one in the output folder"
    assert archive_error(zip_of({f"A/2026/{NAME}": JSON, f"B/2026/{NAME}": JSON})) == message
    with pytest.warns(UserWarning, match="Duplicate name"):
        twice = zip_with((NAME, b'{"a": 1}'), (NAME, JSON))
    assert archive_error(twice) == message


def test_path_that_leads_out_of_the_archive_is_rejected():
    """Nothing is written to a disk, but no honest packer makes such a path; nor one with a NUL."""
    message = "holds a _results.json whose path leads out of it"
    for folder in ("/", "../", "a/../", "a//", "./"):
        assert archive_error(zip_of({f"{folder}{NAME}": JSON, f"b/c/d/{NAME}": JSON})) == message
    # Of Windows, as it stands in the file, whatever this machine makes of it.
    for path in ("C:/_results.json", "a\\..\\b/_results.json"):
        data = zip_of({path.replace("\\", "#"): JSON}).replace(b"#", b"\\")
        assert archive_error(data) == message
    assert archive_error(zip_of({f"{NAME}#.txt": JSON}).replace(b"#", b"\0")) == message


def test_zip_with_symlink_encryption_or_unsupported_compression_is_rejected():
    """Python would unpack each piece of another kind whole: 4 kB of LZMA can become gigabytes."""
    entry = zipfile.ZipInfo(NAME)
    entry.external_attr = (stat.S_IFLNK | 0o777) << 16
    assert archive_error(zip_with((entry, b"/etc/passwd"))) == "holds a _results.json that is a symbolic link"
    assert archive_error(with_header_value(zip_of({NAME: JSON}), 6, "<H", 1)) == "is encrypted"
    for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA, 99):
        data = with_header_value(zip_of({NAME: JSON}), 8, "<H", method)
        assert archive_error(data) == "is packed in a way that is not supported"


def test_unpacked_size_limit_applies_even_if_zip_header_states_other_size():
    """A hundred thousandth of what it becomes."""
    content = b"{" + b" " * (archive.MAX_MB * 1_000_000)
    bomb = zip_of({NAME: content})
    assert len(bomb) < 200_000
    assert archive_error(bomb) == archive_error(content) == "holds more than 100 MB"
    # Of less no more than that is read, and then the sum is wrong; more does no harm.
    large = zip_of({NAME: b"{" + b" " * 1_000_000})
    assert archive_error(with_header_value(large, 22, "<I", 20)) == "is damaged, and cannot be unpacked"
    assert len(read(with_header_value(large, 22, "<I", 2**32 - 2))) == 1_000_001


def test_archive_that_lists_too_many_files_is_rejected():
    """A hundred thousand entries of no content would take 100 MB of memory."""
    entry = b"PK\x01\x02" + bytes(24) + struct.pack("<H", 8) + bytes(16)
    many = 100_000
    names = b"".join(entry + b"%08d" % number for number in range(many))
    end = b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, 0xFFFE, 0xFFFE, len(names), 4, 0)
    with at_most(loops=300):
        error = archive_error(b"PK\x03\x04" + names + end)
    assert error == "lists too many files; upload only the _results.json of the output folder"


def test_error_tells_a_damaged_archive_from_a_file_that_is_no_zip_or_no_json():
    for data in (b"", b"<Error>gone</Error>", b"[]", b"\x1f\x8b\x08", b"PK", b"\xff\xfe{\0"):
        assert archive_error(data) == "is neither a zip nor the file _results.json"
    for content in (b"", b"# Results", zip_of({"a": JSON})):
        assert archive_error(zip_of({NAME: content})) == "holds a _results.json that is not JSON"
    # A download that broke off, or a flipped bit in what is packed: the sum does not agree.
    for cut in (4, 20, 40, -60, -30, -10, -1):
        assert archive_error(zip_of({NAME: JSON * 10})[:cut]) == "is damaged, and cannot be unpacked", cut
    data = bytearray(zip_with((NAME, JSON)))
    data[data.index(b"Version")] ^= 1
    assert archive_error(bytes(data)) == "is damaged, and cannot be unpacked"


ORIGINALS = [
    zip_of({NAME: JSON * 20, f"a/{NAME}": "{}", "b/": "", "ü.md": "x"}),
    zip_of({"_results.json": zlib.compress(JSON)}),
]
CHANGES = st.lists(st.tuples(st.integers(0, 10_000), st.binary(min_size=1, max_size=8)), max_size=6)


@given(st.sampled_from(ORIGINALS), CHANGES, st.integers(0, 40))
@settings(max_examples=examples(400))
def test_corrupted_zip_is_read_or_raises_archive_error(original, changes, cut):
    data = bytearray(original[: len(original) - cut])
    for place, piece in changes:
        at = place % len(data)
        data[at : at + len(piece)] = piece
    with contextlib.suppress(ArchiveError):
        assert read(bytes(data)).lstrip().startswith((b"{", b"\xef\xbb\xbf"))
