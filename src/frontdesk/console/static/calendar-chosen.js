// A time chosen in the grid: a press on free time books there, a drag moves an appointment, keys do both.

import { hideCard } from "./calendar-card.js";
import { calendar, refresh } from "./calendar-grid.js";
import { adopted, signedOut, toast } from "./console.js";
import { text } from "./texts.js";
import { readTime, writtenTime } from "./times.js";

const STEP = 5; // minutes a row
const DRAG_PIXELS = 6;
const SEARCH_MS = 350;

const dialog = document.querySelector("[data-chosen]");
const body = dialog.querySelector("[data-chosen-body]");
let back = null; // where the focus goes afterwards

const clock = (minutes) => `${String(Math.floor(minutes / 60) % 24).padStart(2, "0")}:${String(minutes % 60).padStart(2, "0")}`;

/** The provider, date and time under the pointer; null on rows that the day does not have. */
function timeAt(x, y) {
  const column = document.elementsFromPoint(x, y).map((each) => each.closest(".cal-body[data-provider]")).find(Boolean);
  if (!column) return null;
  const { day, clocks } = column.closest("[data-day]").dataset;
  const { top, height } = column.getBoundingClientRect();
  const rows = Number(getComputedStyle(column).getPropertyValue("--rows"));
  const row = Math.min(rows - 1, Math.max(0, Math.floor(((y - top) / height) * rows)));
  const step = Number(calendar.dataset.interval) || STEP;
  const time = clocks === undefined ? timeOfRow(row, step) : listedTime(clocks.split(","), row, step);
  return time ? { column, provider: column.dataset.provider, date: day, time, row } : null;
}

function timeOfRow(row, step) {
  const opens = Number(calendar.querySelector("[data-cal]").dataset.firstMinute);
  return clock(Math.floor((opens + row * STEP) / step) * step);
}

/** The same where a clock change is among the rows. */
function listedTime(times, row, step) {
  const minutes = (time) => Number(time.slice(0, 2)) * 60 + Number(time.slice(3, 5));
  while (row && times[row - 1] && minutes(times[row]) % step) row -= 1;
  return times[row];
}

const place = ({ provider, date, time }) => new URLSearchParams({ provider, date, time, location: calendar.dataset.location });

/** Opens a page of a chosen time beside what it is about. */
async function open(address, beside) {
  hideCard();
  const answer = await fetch(address).catch(() => null);
  if (await take(answer)) {
    if (!dialog.open) dialog.showModal();
    put({ x: beside.x + 12, y: beside.y - 40 });
    focusFirst();
  }
}

/** Shows the answer; false if there was none to show. */
async function take(answer) {
  if (!answer) return toast(text("away_nothing_changed")), false;
  if (answer.status === 401) return signedOut(), false;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const found = page.getElementById("chosen-time");
  if (found) {
    body.replaceChildren(adopted(found));
    fitVisit();
    if (dialog.open) putAgain();
    return true;
  }
  dialog.close();
  toast((page.querySelector("main > .notice") ?? page.querySelector("main p") ?? page.querySelector("h1")).textContent.trim());
  refresh();
  return false;
}

function focusFirst() {
  const refused = body.querySelector(".notice");
  const first = body.querySelector(refused ? "button[name=at], button[name=time]" : "[autofocus]");
  (first ?? body.querySelector("input:not([type=hidden])"))?.focus();
}

function put({ x, y }) {
  const { width, height } = dialog.getBoundingClientRect();
  dialog.style.left = `${Math.max(8, Math.min(x, innerWidth - width - 8))}px`;
  dialog.style.top = `${Math.max(8, Math.min(y, innerHeight - height - 8))}px`;
}

/** Content that grew stays on the screen. */
function putAgain() {
  const { left, top } = dialog.getBoundingClientRect();
  put({ x: left, y: top });
}

dialog.addEventListener("submit", (event) => {
  event.preventDefault();
  event.stopPropagation();
  send(event.target, event.submitter);
});

async function send(form, submitter) {
  const fields = new URLSearchParams(new FormData(form, submitter));
  const buttons = [...form.querySelectorAll("button")];
  for (const button of buttons) button.disabled = true;
  form.setAttribute("aria-busy", "true");
  const sent = form.method === "get" ? fetch(`${form.action}?${fields}`) : fetch(form.action, { method: "POST", body: fields });
  const answer = await sent.catch(() => null);
  for (const button of buttons) button.disabled = false;
  form.removeAttribute("aria-busy");
  if (answer?.status === 401) signedOut(() => send(form, submitter));
  else if (await take(answer)) focusFirst();
}

// The patient is looked up while the name is typed

let typing = null;

dialog.addEventListener("input", (event) => {
  // The rules that would be broken are those of the fields as they were.
  if (!event.target.closest(".override")) body.querySelector(".override")?.remove();
  if (event.target.name !== "search") return;
  clearTimeout(typing);
  const hits = body.querySelector("[data-hits]");
  hits.replaceChildren();
  if (event.target.value.trim().length > 1) typing = setTimeout(() => find(event.target.form), SEARCH_MS);
});

async function find(form) {
  const fields = new URLSearchParams(new FormData(form));
  fields.delete("patient");
  const answer = await fetch(form.action, { method: "POST", body: fields }).catch(() => null);
  if (answer?.status === 401) return signedOut();
  if (!answer || !form.isConnected || form.elements.search.value !== fields.get("search")) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const found = page.querySelector("[data-hits]");
  if (!found) return;
  body.querySelector("[data-hits]").replaceChildren(...document.adoptNode(found).childNodes);
  body.querySelector("[data-book]").textContent = text("book");
  fitVisit();
  putAgain();
}

dialog.addEventListener("change", (event) => {
  if (event.target.name === "patient") fitVisit();
  if (event.target.name === "visit") event.target.setAttribute("data-chosen-visit", "");
});

/** A visit that a new or a known patient can have, unless one was chosen; others only where staff may override. */
function fitVisit() {
  const kind = body.querySelector("[name=patient]:checked")?.dataset.kind;
  const visit = body.querySelector("[name=visit]");
  if (!kind || !visit) return;
  const fits = (option) => ["any", kind].includes(option.dataset.kind);
  const anyVisit = visit.hasAttribute("data-any-visit");
  for (const option of visit.options) option.disabled = !anyVisit && !fits(option);
  if (anyVisit && visit.hasAttribute("data-chosen-visit")) return;
  if (visit.selectedOptions[0] && !fits(visit.selectedOptions[0])) visit.value = [...visit.options].find(fits)?.value ?? "";
}

dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
dialog.addEventListener("close", () => {
  clearTimeout(typing);
  body.replaceChildren();
  (back?.isConnected ? back : calendar.querySelector('[data-entry][tabindex="0"]'))?.focus({ preventScroll: true });
});

// By pointer

export function bookAt(event) {
  const column = event.target.closest(".cal-body[data-provider]");
  const isFree = event.target === column || event.target.closest(".shade"); // closed time says why it is closed
  if (!column || !isFree || matchMedia("(max-width: 48rem)").matches) return;
  const chosen = timeAt(event.clientX, event.clientY);
  const { day } = column.closest("[data-day]").dataset;
  if (!chosen || !calendar.hasAttribute("data-books")) return location.assign(`/console/book?date=${day}&provider=${column.dataset.provider}`);
  back = null;
  open(`/console/book/at?${place(chosen)}`, { x: event.clientX, y: event.clientY });
}

let drag = null;

calendar.addEventListener("dragstart", (event) => event.preventDefault());
calendar.addEventListener("pointerdown", (event) => {
  const entry = event.target.closest("[data-entry]");
  if (!entry || event.button || event.pointerType !== "mouse" || !entry.closest(".is-booked, .is-confirmed")) return;
  drag = { entry, x: event.clientX, y: event.clientY, grip: event.clientY - entry.getBoundingClientRect().top, ghost: null };
});
document.addEventListener("pointermove", (event) => {
  if (!drag) return;
  if (!drag.ghost && Math.hypot(event.clientX - drag.x, event.clientY - drag.y) < DRAG_PIXELS) return;
  hideCard();
  drag.ghost ??= ghostOf(drag.entry);
  drag.to = timeAt(event.clientX, event.clientY - drag.grip + 1);
  drag.ghost.hidden = !drag.to;
  if (!drag.to) return;
  const row = drag.to.column.getBoundingClientRect().height / Number(getComputedStyle(drag.to.column).getPropertyValue("--rows"));
  const box = drag.to.column.getBoundingClientRect();
  drag.ghost.style.left = `${box.left}px`;
  drag.ghost.style.width = `${box.width}px`;
  drag.ghost.style.top = `${box.top + drag.to.row * row}px`;
  drag.ghost.textContent = writtenTime(drag.to.time.slice(0, 5));
});
document.addEventListener("pointerup", (event) => {
  const { entry, ghost, to } = drag ?? {};
  drag = null;
  ghost?.remove();
  if (!ghost) return;
  // The press that ends a drag opens nothing.
  calendar.addEventListener("click", (click) => (click.preventDefault(), click.stopPropagation()), { capture: true, once: true });
  setTimeout(() => calendar.dispatchEvent(new MouseEvent("click")));
  if (to) moveTo(entry, to, { x: event.clientX, y: event.clientY });
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || !drag) return;
  drag.ghost?.remove();
  drag = null;
});

function ghostOf(entry) {
  const ghost = document.createElement("div");
  ghost.className = "cal-ghost";
  ghost.style.height = `${entry.getBoundingClientRect().height}px`;
  document.body.append(ghost);
  return ghost;
}

function moveTo(entry, to, beside) {
  back = entry;
  open(`/console/appointments/${entry.dataset.entry}/move/at${to ? `?${place(to)}` : ""}`, beside);
}

// By keys, from the appointment that has the focus: after it, or the appointment itself

export function bookAfter(entry) {
  if (!calendar.hasAttribute("data-books")) return false;
  const until = entry.dataset.until ?? readTime(entry.querySelector(".entry-until").textContent.trim().slice(1));
  const { provider } = entry.closest(".cal-body").dataset;
  const date = entry.dataset.endsOn ?? entry.closest("[data-day]").dataset.day;
  back = entry;
  const { left, bottom } = entry.getBoundingClientRect();
  open(`/console/book/at?${place({ provider, date, time: until })}`, { x: left, y: bottom });
  return true;
}

export function moveByKeys(entry) {
  const { left, bottom } = entry.getBoundingClientRect();
  moveTo(entry, null, { x: left, y: bottom });
}
