"""Result files of other tools, read into rows: one module for each format.

**A reader** is a `reader.Reader` in a module of this package, listed in `reading`, or in one of an
extension, whose part `readers` lists it. Its `read` is a pure function from a `source.SourceFile` (name
and bytes) to the `ResultSet`s in it, or None if the file is not of its format::

    def read(file: SourceFile) -> Sequence[ResultSet] | None:
        document = file.json()                         # None if it is no JSON; parsed once for all readers
        if not isinstance(document, dict) or document.get("version") != 3:
            return None                                # not mine: decide by content, never by the name
        rows = [_row(item) for item in document["results"]]
        return [ResultSet(suite=..., arm=..., rows=rows, fingerprint={...}, official=...)]

    READER = Reader(
        "promptfoo", "promptfoo results (version 3)", read, files="results as JSON, version 3", tried_with=...
    )

The option `format`, its help and the tables of `docs/gate-files.md` follow from it (`make reference`).

**What a reader may rely on.** `reading.read_file` asks readers in order and stops at the first that does
not return None. `SourceFile` bounds size and nesting: `json()`, `json_lines()`, `text()` and `members()`
(a zip file) are what readers read through. No path in a file is followed, and no code in it is run.
Afterwards `reading` refuses scores that are NaN, infinite or outside 0..1, amounts that are no amounts,
rows that are both decided and undecided, trials that are there twice, and names that are too long:
readers need not. A `KeyError`, `TypeError`, `ValueError`, `IndexError` or `AttributeError` that leaves
`read` becomes a message that the file is broken; `raise file.broken("samples[3] has no id.")` says it
better.

**Which result is what.** A score by itself is `Row(score=0.7, passed=...)`; a tool without `passed`
passes at full score. Undecided rows have `undecided` and a `reason`, and neither `passed` nor `score`. A
failure (an empty patch, a wrong answer, a step limit) is `passed=False`, also where nothing was
produced. Several scorers of one trial are its `checks`. `definition` and `fingerprint` say what is
comparable. Models, prompts and providers are arms: one `ResultSet` each.

**Contradictions.** What a file states of its own rows and they contradict (totals, a status) goes into
`ResultSet.contradictions`, with its place; what it states of the rows in other files into `ResultSet.stated`.
Absent is no contradiction. A row that contradicts itself is undecided. `ResultSet.run_ids` has the ids of the
run, by which a run that is given twice is known; `metric` and `higher_is_better` say how scores are read.

**Official scores.** If the file states the tool's own score, put it into `ResultSet.official`. If the
tool computes it from rows (pass@k), give the reader `official=function`: it gets all rows of a suite, of
all files together. `OfficialScore.rule` says in one sentence how the tool counts otherwise than we do. A
file of a format that has no rows but belongs to others (an aggregate beside its samples) is a
`ResultSet` without rows; it is put together with the set of the same suite and arm.
"""
