"""One file out of a downloaded artifact, whatever the archive says of itself."""

import contextlib
import io
import stat
import struct
import time
import zipfile
import zlib

import pytest
from each_row import each_row
from github_api import zip_of
from hypothesis import given, settings
from hypothesis import strategies as st
from property_examples import examples

from ci_evals.adapters.github import archive
from ci_evals.adapters.github.archive import ArchiveError

NAME = "_results.json"
JSON = b'{"schemaVersion": 1}'


def read(data: bytes) -> bytes:
    return archive.read(io.BytesIO(data), NAME)


def refused(data: bytes) -> str:
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


def changed(data: bytes, offset: int, form: str, value: int) -> bytes:
    """`data` with another value in both headers of its one entry; `offset` is that in the local one."""
    out = bytearray(data)
    struct.pack_into(form, out, data.index(b"PK\x03\x04") + offset, value)
    struct.pack_into(form, out, data.index(b"PK\x01\x02") + offset + 2, value)
    return bytes(out)


def test_the_one_file_is_found():
    """As the upload step packs it: alone, or with all the other files of the output folder."""
    assert read(zip_of({NAME: JSON})) == JSON
    folder = {"summary.md": "# x", f"Refunds/2026/{NAME}": "{}", f"A/{NAME}": "{}", NAME: JSON}
    assert read(zip_of(folder)) == JSON


def test_the_least_depth_wins():
    """An upload of several paths keeps the folders that they share."""
    assert read(zip_of({f"results/{NAME}": JSON, f"results/Refunds/2026/{NAME}": "{}"})) == JSON


@pytest.mark.parametrize("text", [JSON, b"\xef\xbb\xbf" + JSON, b"\n  " + JSON], ids=repr)
def test_json_may_be_uploaded_unzipped(text):
    """The upload step can do so. What it says of its type does not matter."""
    assert read(text) == text


def test_a_zip_of_the_large_kind_is_read():
    """Zip64, which a packer uses that does not know the size in advance."""
    data = io.BytesIO()
    with (
        zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as file,
        file.open(NAME, "w", force_zip64=True) as entry,
    ):
        entry.write(JSON)
    assert read(data.getvalue()) == JSON


def test_a_zip_with_a_comment_is_read():
    """It stands behind the end that is looked for."""
    data = io.BytesIO(zip_of({NAME: JSON}))
    with zipfile.ZipFile(data, "a") as file:
        file.comment = b"made by a packer" * 1000
    assert read(data.getvalue()) == JSON


def test_archive_without_the_file_names_what_to_upload():
    """Nothing, another file, one whose name only ends so, a folder of that name, a zip in a zip."""
    nothing = "holds no file _results.json; upload the one in the output folder"
    assert refused(zip_of({})) == nothing
    assert (
        refused(zip_of({"junit.xml": "<x/>", "old_results.json": "{}", "_results.json.bak": "{}"})) == nothing
    )
    assert refused(zip_of({"_results.json/": ""})) == nothing
    assert refused(zip_of({"all.zip": zip_of({NAME: JSON})})) == nothing


def test_which_one_is_meant_must_be_clear():
    """The suites' own files without that of the run, and one name twice."""
    message = "holds 2 files _results.json side by side; upload only the one in the output folder"
    assert refused(zip_of({f"A/2026/{NAME}": JSON, f"B/2026/{NAME}": JSON})) == message
    with pytest.warns(UserWarning, match="Duplicate name"):
        twice = zip_with((NAME, b'{"a": 1}'), (NAME, JSON))
    assert refused(twice) == message


@pytest.mark.parametrize(
    "path",
    ["/_results.json", "../_results.json", "a/../_results.json", "a//_results.json", "./_results.json"],
)
def test_a_path_that_leads_elsewhere_is_refused(path):
    """Nothing is written to a disk, but no honest packer makes such a path."""
    assert (
        refused(zip_of({path: JSON, f"b/c/d/{NAME}": JSON}))
        == "holds a _results.json whose path leads out of it"
    )


@pytest.mark.parametrize("path", ["C:/_results.json", "a\\..\\b/_results.json"])
def test_a_path_of_windows_is_refused(path):
    """As it stands in the file, whatever this machine makes of it."""
    data = zip_of({path.replace("\\", "#"): JSON}).replace(b"#", b"\\")
    assert "leads out" in refused(data)


def test_a_name_that_goes_on_after_its_end_is_refused():
    """What comes after a NUL, one reader takes and another does not."""
    data = zip_of({f"{NAME}#.txt": JSON}).replace(b"#", b"\0")
    assert "leads out" in refused(data)


def test_a_symbolic_link_is_refused():
    """It would name a file of the machine that packed it."""
    entry = zipfile.ZipInfo(NAME)
    entry.external_attr = (stat.S_IFLNK | 0o777) << 16
    assert refused(zip_with((entry, b"/etc/passwd"))) == "holds a _results.json that is a symbolic link"


def test_encrypted_archive_is_refused():
    """There is no password to be asked for."""
    assert refused(changed(zip_of({NAME: JSON}), 6, "<H", 1)) == "is encrypted"


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA, 99])
def test_archive_with_another_compression_is_refused(method):
    """Python would unpack each piece whole: 4 kB of LZMA can become gigabytes."""
    data = changed(zip_of({NAME: JSON}), 8, "<H", method)
    assert refused(data) == "is packed in a way that is not supported"


def test_a_bomb_is_not_unpacked():
    """A hundred thousandth of what it becomes; and no header is asked how much that is."""
    bomb = zip_of({NAME: b"{" + b" " * (archive.MAX_MB * 1_000_000)})
    assert len(bomb) < 200_000
    assert refused(bomb) == "holds more than 100 MB"


def test_what_a_header_says_of_the_size_is_not_believed():
    """Of less no more than that is read, and then the sum is wrong; more does no harm."""
    large = zip_of({NAME: b"{" + b" " * 1_000_000})
    assert refused(changed(large, 22, "<I", 20)) == "is damaged, and cannot be unpacked"
    assert len(read(changed(large, 22, "<I", 2**32 - 2))) == 1_000_001


def test_a_list_of_very_many_files_is_not_read():
    """A hundred thousand entries of no content would take 100 MB of memory."""
    entry = b"PK\x01\x02" + bytes(24) + struct.pack("<H", 8) + bytes(16)
    many = 100_000
    names = b"".join(entry + b"%08d" % number for number in range(many))
    end = b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, 0xFFFE, 0xFFFE, len(names), 4, 0)
    before = time.process_time()
    assert refused(b"PK\x03\x04" + names + end) == (
        "lists too many files; upload only the _results.json of the output folder"
    )
    assert time.process_time() - before < 1


def test_a_large_file_unzipped_is_refused():
    """The limit is that of the content, packed or not."""
    assert refused(b"{" + b" " * (archive.MAX_MB * 1_000_000)) == "holds more than 100 MB"


@pytest.mark.parametrize(
    "data", [b"", b"<Error>gone</Error>", b"[]", b"\x1f\x8b\x08", b"PK", b"\xff\xfe{\0"], ids=repr
)
def test_file_that_is_neither_zip_nor_json_is_reported(data):
    """An error page, another packer's file, nothing."""
    assert refused(data) == "is neither a zip nor the file _results.json"


@pytest.mark.parametrize("content", [b"", b"# Results", zip_of({"a": JSON})], ids=["no", "text", "zip"])
def test_entry_that_is_no_json_is_reported(content):
    """Also a zip that was given the name."""
    assert refused(zip_of({NAME: content})) == "holds a _results.json that is not JSON"


@each_row("cut", [4, 20, 40, -60, -30, -10, -1])
def test_half_a_zip_is_damaged(cut):
    """A download that broke off."""
    assert refused(zip_of({NAME: JSON * 10})[:cut]) == "is damaged, and cannot be unpacked"


def test_a_flipped_bit_is_noticed():
    """In what is packed: the sum does not agree."""
    data = bytearray(zip_with((NAME, JSON)))
    data[data.index(b"Version")] ^= 1
    assert refused(bytes(data)) == "is damaged, and cannot be unpacked"


ORIGINALS = [
    zip_of({NAME: JSON * 20, f"a/{NAME}": "{}", "b/": "", "ü.md": "x"}),
    zip_of({"_results.json": zlib.compress(JSON)}),
]


@given(
    st.sampled_from(ORIGINALS),
    st.lists(st.tuples(st.integers(0, 10_000), st.binary(min_size=1, max_size=8)), max_size=6),
    st.integers(0, 40),
)
@settings(max_examples=examples(400))
def test_every_broken_zip_is_reported(original, changes, cut):
    """Bytes overwritten anywhere: the content, or one line that says why not."""
    data = bytearray(original[: len(original) - cut])
    for place, piece in changes:
        at = place % len(data)
        data[at : at + len(piece)] = piece
    with contextlib.suppress(ArchiveError):
        assert read(bytes(data)).lstrip().startswith((b"{", b"\xef\xbb\xbf"))
