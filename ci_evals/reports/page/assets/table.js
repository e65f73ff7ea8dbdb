// The table of tests: filtered and sorted. Without the script it stands there whole.

(() => {
  const table = document.getElementById("tests");
  const form = document.getElementById("filters");
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row, place) => ({
    row,
    place,
    text: row.textContent.toLowerCase(),
    status: row.dataset.status,
    suite: row.dataset.suite,
    tags: row.dataset.tags.split("\n"),
    categories: row.dataset.categories.split("\n"),
    marks: row.dataset.marks.split("\n"),
    shown: true,
  }));

  /** The conditions of all filters on a row. */
  function conditions() {
    const fields = new FormData(form);
    const words = (fields.get("text") ?? "").toLowerCase().split(/\s+/).filter(Boolean);
    const tests = words.map((word) => (one) => one.text.includes(word));
    for (const name of ["status", "suite"]) {
      const value = fields.get(name);
      if (value) tests.push((one) => one[name] === value);
    }
    for (const name of ["tags", "categories"]) {
      const value = fields.get(name);
      if (value) tests.push((one) => one[name].includes(value));
    }
    for (const name of ["flaky", "changed"]) {
      if (fields.get(name)) tests.push((one) => one.marks.includes(name));
    }
    return tests;
  }

  function filter() {
    const tests = conditions();
    let count = 0;
    for (const one of rows) {
      const shown = tests.every((holds) => holds(one));
      if (shown) count += 1;
      if (shown !== one.shown) one.row.hidden = !shown;
      one.shown = shown;
    }
    const noun = rows.length === 1 ? "test" : "tests";
    document.getElementById("shown").textContent = `${count} of ${rows.length} ${noun} shown`;
  }

  /** A cell's number or words; null where it has none, which stands last either way. */
  function keyOf(cell, kind) {
    if (kind === "number") return cell.dataset.key === "" ? null : Number(cell.dataset.key);
    return cell.textContent.trim() || null;
  }

  const words = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

  function sort(button) {
    const head = button.closest("th");
    const falls = head.getAttribute("aria-sort") === "ascending";
    for (const other of table.tHead.rows[0].cells) other.setAttribute("aria-sort", "none");
    head.setAttribute("aria-sort", falls ? "descending" : "ascending");
    const kind = button.dataset.kind;
    const column = head.cellIndex;
    const keys = new Map(rows.map((one) => [one, keyOf(one.row.cells[column], kind)]));
    const compare = kind === "number" ? (a, b) => a - b : words.compare;
    rows.sort((one, other) => {
      const [a, b] = [keys.get(one), keys.get(other)];
      if (a === null || b === null) return (a === null) - (b === null) || one.place - other.place;
      return (falls ? compare(b, a) : compare(a, b)) || one.place - other.place;
    });
    // Rows that are moved while nobody sees them cost a tenth.
    body.remove();
    body.append(...rows.map((one) => one.row));
    table.append(body);
  }

  table.tHead.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button) sort(button);
  });
  form.addEventListener("input", filter);
  // The fields are emptied only after the event.
  form.addEventListener("reset", () => setTimeout(filter));
  form.addEventListener("submit", (event) => event.preventDefault());
  const columns = document.getElementById("columns");
  const fit = () => table.classList.toggle("brief", !columns.checked);
  columns.addEventListener("change", fit);
  form.addEventListener("reset", () => setTimeout(fit));
  fit();
  form.hidden = false;
  filter();
})();
