// Row height, zoom and colours of the grid: at once, and kept for the person.

import { calendar } from "./calendar-grid.js";
import { post, toast } from "./console.js";
import { text } from "./texts.js";

const options = document.querySelector("[data-view-options]");
const control = options.querySelector("[data-zooms]");
const zooms = control.dataset.zooms.split(",").map(Number);
const zoomed = control.querySelector("output");

/** A grid that was fetched before a choice was saved still has the choice. */
function dress() {
  const grid = calendar.querySelector("[data-cal]");
  const chosen = { density: options.elements.density.value, zoom: parseInt(zoomed.value, 10), by: options.elements.colours.value };
  for (const each of [...grid.classList]) if (each.split("-")[0] in chosen) grid.classList.remove(each);
  for (const [name, value] of Object.entries(chosen)) grid.classList.add(`${name}-${value}`);
}

function keep(fields) {
  dress();
  post("/console/calendar/preferences", fields).catch(() => toast(text("away_not_saved")));
}

calendar.addEventListener("replaced", dress);

options.addEventListener("change", (event) => {
  const { name, value } = event.target;
  if (name === "density" || name === "colours") keep({ [name]: value });
});

control.addEventListener("click", (event) => {
  const button = event.target.closest("[data-zoom]");
  if (!button) return;
  event.preventDefault();
  const at = zooms.indexOf(parseInt(zoomed.value, 10)) + Number(button.dataset.zoom);
  const zoom = zooms[Math.max(0, Math.min(zooms.length - 1, at))];
  const scroll = calendar.querySelector(".cal-scroll");
  const middle = (scroll.scrollTop + scroll.clientHeight / 2) / scroll.scrollHeight;
  zoomed.value = `${zoom}%`;
  keep({ zoom });
  scroll.scrollTop = middle * scroll.scrollHeight - scroll.clientHeight / 2; // what was in the middle stays there
});
