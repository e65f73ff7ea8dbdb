"""Filled sheets as people and spreadsheets leave them: read where they can be, refused where they cannot."""

from contextlib import suppress

import pytest
from each_row import each_row
from hypothesis import given
from hypothesis import strategies as st

from ci_evals.domain.errors import UsageError
from ci_evals.extensions.calibration.sheet_reading import count_labels, read

ROWS = "item,label\ni1,pass\ni2,fail\ni3,cannot tell\ni4,\n"
LABELS = {"i1": True, "i2": False, "i3": None}


def read_labels(folder, data: str | bytes, name: str = "ada.csv") -> dict[str, bool | None]:
    file = folder / name
    file.write_bytes(data if isinstance(data, bytes) else data.encode())
    return {label.item: label.passed for label in read([file])}


@each_row(
    "data",
    [
        *(ROWS, "\ufeff" + ROWS, ROWS.replace("\n", "\r\n"), ROWS.replace("\n", "\r")),
        *(ROWS.replace(",", ";"), ROWS.replace(",", "\t"), ROWS.replace(",", "\t").encode("utf-16")),
        *(ROWS.rstrip("\n"), "\n" + ROWS + "\n\n"),
        "Label , ITEM,x\nPass,i1\nFAIL,i2,\n Cannot Tell ,i3,,,\n,,\n",
        'item,note,label\ni1,"a, ""b""\n; c",pass\ni2,,fail\ni3,,cannot_tell\n',
        "item,label,note\ni1,pass,gr\xfcn\ni2,fail,\ni3,can\u2019t tell,\n".encode("cp1252"),
    ],
)
def test_sheet_is_read_in_every_encoding_and_delimiter_of_spreadsheets(tmp_path, data):
    assert read_labels(tmp_path, data) == LABELS


def test_common_words_for_labels_are_accepted(tmp_path):
    for passed, words in (
        (True, ("pass", "PASSED", "yes", "Y", "TRUE", "1", " pass ", "'pass", '"pass"')),
        (False, ("fail", "Failed", "no", "N", "False", "0", "fail.")),
        (None, ("cannot tell", "Cannot_Tell", "can't tell", "unsure", "?")),
    ):
        for word in words:
            quoted = word.replace('"', '""')
            assert read_labels(tmp_path, f'item,label\ni1,"{quoted}"\n') == {"i1": passed}, word


def test_labels_of_a_sheet_are_counted_and_named_after_its_column_or_file(tmp_path):
    (tmp_path / "more").mkdir()
    (tmp_path / "ada.csv").write_text("item,label,labeller\ni1,pass,\ni2,pass,Ben\n")
    (tmp_path / "more/Ada.csv").write_text("item,label\ni1,yes\ni3,fail\n")
    (tmp_path / "more/sheet.csv").write_text("item,label\ni1,\n")
    result = {
        (label.labeller.lower(), label.item) for label in read([tmp_path / "ada.csv", tmp_path / "more"])
    }
    assert result == {("ada", "i1"), ("ben", "i2"), ("ada", "i3")}
    assert len(read([tmp_path / "ada.csv", tmp_path / "ada.csv"])) == 2
    file = tmp_path / "sheet.csv"
    assert count_labels(file) == 0
    for text, count in ((ROWS, 3), ("item,label\ni1,\n", 0)):
        file.write_text(text)
        assert count_labels(file) == count
    for text in ("my notes", "item,label\ni1,dunno\n"):
        file.write_text(text)
        with pytest.raises(UsageError):
            count_labels(file)


def errors_of(*paths) -> list[str]:
    with pytest.raises(UsageError) as refusal:
        read(paths)
    return str(refusal.value).split("\n")


def test_all_problems_of_all_sheets_are_reported_with_their_positions(tmp_path):
    first, second, third = (tmp_path / name for name in ("ada.csv", "ben.csv", "cleo.csv"))
    first.write_text('item,note,label\ni1,"two\nlines",maybe\ni2,,pass\n,,fail\n')
    second.write_text("id,verdict\ni1,pass\n")
    third.write_text("item,label,label\ni1,pass,fail\n")
    error = errors_of(first, second, third, tmp_path / "none.csv")
    assert len(error) == 5
    assert error[0].startswith(
        f"{first}:2: column label: 'maybe' is not a label; write pass, fail, cannot tell"
    )
    assert error[1].startswith(f"{first}:5: column item: it is empty")
    assert error[2].startswith(f"{second}:1: there is no column 'item' and none 'label'")
    assert error[3].startswith(f"{third}:1: the column 'label' appears twice")
    assert error[4] == f"{tmp_path / 'none.csv'}: cannot be read: No such file or directory"


def test_unlabeled_contradicting_or_hostile_files_are_refused_with_the_reason(tmp_path):
    for name, label in (("a", "pass"), ("b", "fail")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "sheet.csv").write_text(f"item,label\ni1,{label}\n")
    (error,) = errors_of(tmp_path / "a/sheet.csv", tmp_path / "b/sheet.csv")
    assert "'sheet' says another thing of 'i1' than at" in error
    assert "column labeller" in error
    file = tmp_path / "ada.csv"
    file.write_text(f"item,label\ni1,\x1b[31m::error::x{'y' * 500}\n")
    (error,) = errors_of(file)
    assert "\x1b" not in error
    assert len(error) < 250
    for data, why in (
        *[(b"", "it is empty"), (b"item,label\n", "no label in it")],
        *[(b"item,label\ni1,\n", "no label in it"), (b"PK\x03\x04rest", "a workbook or an archive")],
        (b"\x00\xff\x00", "there is no column 'item'"),
        (b'item,label\ni1,"pass\n' + b"x" * 200_000, "not CSV"),
        (b"<html>", "there is no column 'item'"),
    ):
        file = tmp_path / "ada.csv"
        file.write_bytes(data)
        (error,) = errors_of(file)
        assert why in error


@given(st.binary(max_size=300))
def test_any_file_is_read_or_a_usage_error(tmp_path_factory, data):
    file = tmp_path_factory.getbasetemp() / "any.csv"
    file.write_bytes(data)
    with suppress(UsageError):
        assert read([file])
