"use strict";
(() => {
  const sliders = Array.from(document.querySelectorAll(".slider[data-name]"));
  const design = document.getElementById("design");
  const byId = (id) => document.getElementById(id);
  const steps = 1000;
  let asked = 0;

  const ends = (slider) => [Number(slider.dataset.lowest), Number(slider.dataset.highest)];
  const shown = (slider, value) => (slider.dataset.whole === "1" ? Math.round(value) : Number(value.toPrecision(3)));
  const fromPlace = (slider, place) => {
    const [low, high] = ends(slider);
    return shown(slider, low * (high / low) ** (place / steps));
  };
  const toPlace = (slider, value) => {
    const [low, high] = ends(slider);
    return Math.round(steps * Math.log(value / low) / Math.log(high / low));
  };
  const set = (slider, value) => {
    const range = slider.querySelector("[type=range]");
    range.value = toPlace(slider, value);
    range.setAttribute("aria-valuetext", String(value));
    slider.querySelector("[type=number]").value = value;
  };
  const query = () => {
    const values = new URLSearchParams();
    for (const slider of sliders) values.set(slider.dataset.name, slider.querySelector("[type=number]").value);
    values.set("design", design.value);
    return values.toString();
  };

  const short = (value) => {
    if (value === null) return "–";
    if (value === 0) return "0";
    return Math.abs(value) >= 1e-3 && Math.abs(value) < 1e6 ? String(Number(value.toPrecision(4))) : value.toExponential(2);
  };
  const unit = (value, names) => {
    let index = 0;
    while (value >= 1000 && index < names.length - 1) { value /= 1000; index += 1; }
    return `${Number(value.toPrecision(3))} ${names[index]}`;
  };
  const seconds = (value) => (value < 1e-3 ? unit(value * 1e6, ["µs"]) : value < 1 ? unit(value * 1e3, ["ms"]) : value < 120 ? unit(value, ["s"]) : `${Number((value / 60).toPrecision(3))} min`);
  const percent = (value) => (value === null ? "–" : `${short(100 * value)}%`);

  const row = (cells) => {
    const made = document.createElement("tr");
    for (const [tag, text, classes, colour] of cells) {
      const cell = document.createElement(tag);
      if (tag === "th") cell.scope = "row";
      if (classes) cell.className = classes;
      if (colour) {
        const swatch = document.createElement("span");
        swatch.className = `swatch c${colour}`;
        cell.append(swatch);
      }
      cell.append(text);
      made.append(cell);
    }
    return made;
  };

  function show(told) {
    const problem = byId("problem");
    problem.hidden = !told.error;
    problem.textContent = told.error || "";
    if (told.error) return;
    byId("facts").textContent = `Minimal loss ${short(told.minimal_loss)}; ` + (told.divergence === null
      ? told.divergence_reason : `divergence D = ${short(told.divergence)}.`);
    byId("rows").replaceChildren(...told.quantities.map((item) => row([
      ["th", item.symbol, "", item.colour],
      ["td", item.reason ? `${item.words}. ${item.reason}` : item.words],
      ["td", short(item.excess_loss), "number"],
      ["td", percent(item.relative_excess_loss), "number"],
      ["td", unit(item.bytes_per_partition, ["B", "kB", "MB", "GB", "TB"]), "number"],
      ["td", seconds(item.seconds), "number"],
    ])));
    byId("tails-words").textContent = told.tails_words;
    byId("tails-rows").replaceChildren(...told.tails.map((tail) => row([
      ["th", `${100 * tail.probability}%`], ["td", percent(tail.relative_excess_loss), "number"],
    ])));
    for (const axis of ["k", "m"]) {
      // Drawn by the server from numbers alone.
      byId(`figure-${axis}`).innerHTML = told.figures[axis] || "Nothing is finite here.";
      byId(`save-${axis}`).href = `figure-${axis}.svg?${told.query}`;
    }
    byId("command").textContent = told.command;
  }

  // A slider that the chosen design does not use would only mislead.
  const usedBy = { odd: "odd", unlikeness: "given" };

  async function ask() {
    for (const slider of sliders) {
      const wanted = usedBy[slider.dataset.name];
      slider.hidden = Boolean(wanted) && wanted !== design.value;
    }
    const number = ++asked;
    const words = query();
    // Numbers of the sizes before stay on the page until the answer comes: say so to those who cannot see it change.
    byId("answers").setAttribute("aria-busy", "true");
    history.replaceState(null, "", `?${words}`);
    let told;
    try {
      const reply = await fetch(`numbers?${words}`);
      told = await reply.json();
    } catch {
      told = { error: "partsketch explore is no longer running: start it again." };
    }
    if (number !== asked) return;
    show(told);
    byId("answers").setAttribute("aria-busy", "false");
  }

  for (const slider of sliders) {
    slider.querySelector("[type=range]").addEventListener("input", (event) => {
      set(slider, fromPlace(slider, Number(event.target.value)));
      ask();
    });
    slider.querySelector("[type=number]").addEventListener("change", (event) => {
      const value = Number(event.target.value);
      if (value > 0) slider.querySelector("[type=range]").value = toPlace(slider, value);
      ask();
    });
  }
  design.addEventListener("change", ask);
  byId("form").addEventListener("submit", (event) => event.preventDefault());
  for (const button of document.querySelectorAll("button[data-copies]")) {
    const words = button.textContent;
    button.addEventListener("click", async () => {
      const text = button.dataset.copies === "command" ? byId("command").textContent : location.href;
      try {
        await navigator.clipboard.writeText(text);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(byId("command"));
        button.textContent = "Selected: press Ctrl+C";
      }
      setTimeout(() => { button.textContent = words; }, 2000);
    });
  }

  const start = new URLSearchParams(location.search);
  for (const slider of sliders) set(slider, Number(start.get(slider.dataset.name)) || fromPlace(slider, steps / 2));
  if (start.get("design")) design.value = start.get("design");
  ask();
})();
