"use strict";
(() => {
  const table = document.getElementById("table");
  const body = table.tBodies[0];
  const rows = Array.from(body.rows);
  const filter = document.getElementById("filter");
  const clear = document.getElementById("clear");
  const count = document.getElementById("count");
  const more = document.getElementById("more");
  const all = document.getElementById("all");
  const firstPage = 50;
  let limit = firstPage;

  function show() {
    const words = filter.value.trim().toLowerCase();
    let matching = 0;
    for (const row of Array.from(body.rows)) {
      const fits = row.dataset.name.toLowerCase().includes(words) && (!clear || !clear.checked || "clear" in row.dataset);
      row.hidden = !fits || matching >= limit;
      if (fits) matching += 1;
    }
    const shown = Math.min(matching, limit);
    count.textContent = shown === matching && matching === rows.length
      ? `${matching} coefficients`
      : `${shown} shown of ${matching} that match, of ${rows.length} coefficients`;
    more.hidden = all.hidden = shown === matching;
  }

  function sort(heading) {
    const headings = Array.from(heading.parentElement.cells);
    const column = headings.indexOf(heading);
    const down = heading.getAttribute("aria-sort") === "ascending";
    const numeric = heading.dataset.kind === "number";
    const key = (row) => {
      const cell = row.cells[column];
      if (!numeric) return cell.textContent;
      return cell.dataset.value === "" ? null : Number(cell.dataset.value);
    };
    const keyed = rows.map((row, index) => [key(row), index, row]);
    keyed.sort(([a, i], [b, j]) => {
      if (a === null || b === null) return (a === null) - (b === null) || i - j;
      const order = numeric ? a - b : a.localeCompare(b, undefined, { numeric: true });
      return (down ? -order : order) || i - j;
    });
    body.append(...keyed.map(([, , row]) => row));
    for (const other of headings) if (other.dataset.kind) other.setAttribute("aria-sort", "none");
    heading.setAttribute("aria-sort", down ? "descending" : "ascending");
    limit = firstPage;
    show();
  }

  for (const heading of table.tHead.rows[0].cells) {
    const button = heading.querySelector("button");
    if (button) button.addEventListener("click", () => sort(heading));
  }
  filter.addEventListener("input", () => { limit = firstPage; show(); });
  // A table without intervals has neither this box nor scales.
  if (clear) clear.addEventListener("change", () => { limit = firstPage; show(); });
  more.addEventListener("click", () => { limit += 200; show(); });
  all.addEventListener("click", () => { limit = rows.length; show(); });
  const scale = document.getElementById("scale");
  if (scale) scale.addEventListener("change", (event) => { table.dataset.scale = event.target.value; });
  show();

  for (const frame of document.querySelectorAll(".walk")) {
    const picture = frame.querySelector(".heat");
    const cells = Array.from(picture.querySelectorAll("rect[data-words]"));
    const cursor = picture.querySelector(".cursor");
    const said = frame.nextElementSibling;
    const side = Number(picture.dataset.count);
    let place = -1;
    const go = (index) => {
      place = index;
      cursor.setAttribute("x", cells[index].getAttribute("x"));
      cursor.setAttribute("y", cells[index].getAttribute("y"));
      said.textContent = cells[index].dataset.words;
    };
    picture.addEventListener("pointerover", (event) => {
      const index = cells.indexOf(event.target);
      if (index >= 0) go(index);
    });
    frame.addEventListener("keydown", (event) => {
      const steps = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };
      if (event.target !== frame || !(event.key in steps)) return;
      event.preventDefault();
      if (place < 0) return go(0);
      const [down, across] = steps[event.key];
      const clamp = (value) => Math.max(0, Math.min(side - 1, value));
      go(clamp(Math.floor(place / side) + down) * side + clamp((place % side) + across));
    });
  }

  for (const button of document.querySelectorAll("button.copy")) {
    button.addEventListener("click", async () => {
      const text = button.parentElement.previousElementSibling;
      try {
        await navigator.clipboard.writeText(text.textContent);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(text);
        button.textContent = "Selected: press Ctrl+C";
      }
    });
  }
})();
