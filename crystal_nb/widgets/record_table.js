// A table of records: one of them is selected, by click or by keyboard. Cells are text, never HTML.
// The selection is a row's key: the kernel may hear of it after it has put other rows in the place of these.
function render({ model, el }) {
  const table = document.createElement("table");
  table.className = "cnb-records";
  table.tabIndex = 0;
  table.setAttribute("role", "grid");
  const prefix = "cnb-row-" + Math.random().toString(36).slice(2);
  el.classList.add("cnb");
  el.append(table);

  const cell = (kind, text) => {
    const made = document.createElement(kind);
    made.textContent = text;
    return made;
  };
  const draw = () => {
    table.setAttribute("aria-label", model.get("label"));
    table.setAttribute("aria-rowcount", String(model.get("total") + 1));
    const head = document.createElement("tr");
    head.append(...model.get("columns").map((name) => cell("th", name)));
    const rows = model.get("rows").map((values, n) => {
      const row = document.createElement("tr");
      row.id = `${prefix}-${n}`;
      row.setAttribute("aria-rowindex", String(model.get("first") + n + 2));
      row.append(...values.map((value) => cell("td", value)));
      row.addEventListener("click", () => pick(n));
      return row;
    });
    const parts = [document.createElement("thead"), document.createElement("tbody")];
    parts[0].append(head);
    parts[1].append(...rows);
    table.replaceChildren(...parts);
    mark();
  };
  const place = () => model.get("row_keys").indexOf(model.get("selected"));
  const mark = () => {
    const at = place();
    const marked = model.get("marked");
    [...table.tBodies[0].rows].forEach((row, n) => {
      row.setAttribute("aria-selected", String(n === at));
      row.classList.toggle("cnb-marked", marked.includes(n));
    });
    const row = table.tBodies[0].rows[at];
    if (!row) return table.removeAttribute("aria-activedescendant");
    table.setAttribute("aria-activedescendant", row.id);
    row.scrollIntoView({ block: "nearest" });
  };
  const choose = (key) => {
    if (!(key >= 0)) return;
    model.set("selected", key);
    model.save_changes();
  };
  const pick = (n) => choose(model.get("row_keys")[n]);
  const steps = { ArrowUp: -1, ArrowDown: 1, PageUp: -10, PageDown: 10 };
  table.addEventListener("keydown", (event) => {
    const last = table.tBodies[0].rows.length - 1;
    const at = place();
    let to;
    if (event.key in steps) to = at + steps[event.key];
    else if (event.key === "Home") to = 0;
    else if (event.key === "End") to = last;
    else return;
    event.preventDefault();
    event.stopPropagation();
    const [before, after] = model.get("beyond");
    if (at < 0 && model.get("selected") >= 0) return; // its rows are on their way
    if (at === last && to > last) choose(after);
    else if (at === 0 && to < 0) choose(before);
    else pick(Math.max(0, Math.min(to, last)));
  });
  table.addEventListener("focusin", () => (table.dataset.lmSuppressShortcuts = "true"));
  model.on("change:rows", draw);
  model.on("change:selected change:row_keys change:marked", mark);
  draw();
}
export default { render };
