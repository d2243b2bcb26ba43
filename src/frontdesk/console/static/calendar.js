// The calendar page: live updates, keyboard navigation, and appointments beside the grid.
// Everything here also works without: the page is a list of links.

import "./calendar-card.js";
import { awaitExpiry, calendar, entries, entryOf, listen, moveNow, oneTabStop, refresh, scrollToNow } from "./calendar-grid.js";
import { bookAfter, bookAt, moveByKeys } from "./calendar-chosen.js";
import { onLetters } from "./calendar-keys.js";
import "./calendar-look.js";
import { adopted, signedOut, toast } from "./console.js";
import { daysOfMonth } from "./days-of-month.js";
import { text } from "./texts.js";

const panel = document.querySelector("[data-panel]");
const panelBody = panel.querySelector("[data-panel-body]");

// One appointment beside the calendar

let opener = null;

async function show(address) {
  const answer = await fetch(address).catch(() => null);
  if (answer?.status === 401) return signedOut();
  if (!answer) return toast(text("away"));
  if (!take(await answer.text())) return location.assign(address);
  if (!panel.open) panel.showModal();
  panel.scrollTop = 0;
}

function take(html) {
  const page = new DOMParser().parseFromString(html, "text/html");
  const found = page.getElementById("appointment");
  if (!found) return false;
  const undo = found.querySelector("form[data-undo]");
  undo?.remove();
  panelBody.replaceChildren(adopted(found));
  const notice = page.querySelector("main > .notice");
  if (notice) toast(notice.textContent.trim(), undo && (() => send(undo)));
  return true;
}

/** Posts a form of an appointment and shows what came of it. */
async function send(form) {
  const buttons = panel.querySelectorAll("button");
  for (const button of buttons) button.disabled = true;
  const answer = await fetch(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)) }).catch(() => null);
  for (const button of buttons) button.disabled = false;
  if (!answer) return toast(text("away"));
  if (answer.status === 401) return signedOut(() => send(form));
  if (!take(await answer.text())) return location.reload();
  if (!panel.open && !answer.ok) panel.showModal();
  panel.querySelector("h1")?.setAttribute("tabindex", "-1");
  if (panel.open) panel.querySelector("h1")?.focus();
  refresh();
}

calendar.addEventListener("click", (event) => {
  const link = event.target.closest("[data-entry]");
  if (link) {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    opener = link.dataset.entry;
    show(link.href);
    return;
  }
  bookAt(event);
});

panel.addEventListener("submit", (event) => {
  event.preventDefault();
  event.stopPropagation(); // the page's own guard against a second press would keep this form forever
  send(event.target);
});

panel.addEventListener("click", (event) => {
  if (event.target === panel) panel.close();
});
panel.addEventListener("close", () => {
  document.querySelector("body > [data-toasts]").append(...panel.querySelectorAll(".toast"));
  panelBody.replaceChildren();
  if (opener) entryOf(opener)?.focus();
});

// Keys

onLetters((event) => {
  const entry = document.activeElement?.closest?.("[data-entry]");
  if (entry && event.key === "m") return moveByKeys(entry), true;
  return Boolean(entry) && event.key === "b" && bookAfter(entry);
});

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (event.key.startsWith("Arrow") && !event.target.closest("input:not([type=checkbox]), select, textarea, [contenteditable], [data-month]")) walk(event);
});

// The small month, fetched when it is opened

const miniMonth = document.querySelector("[data-month]");
const { look: lookAtMonth, goTo, focus } = daysOfMonth(miniMonth);
miniMonth.addEventListener("toggle", async (event) => {
  if (event.newState !== "open") return;
  await goTo(miniMonth.dataset.month);
  focus();
});
calendar.addEventListener("looked", () => miniMonth.matches(":popover-open") && lookAtMonth());

function walk(event) {
  const current = document.activeElement?.closest?.("[data-entry]");
  if (!current) {
    // Arrows scroll the page unless the calendar itself has the focus.
    if (document.activeElement?.classList.contains("cal-scroll") && event.key === "ArrowDown" && entries().length) {
      event.preventDefault();
      entries()[0].focus();
    }
    return;
  }
  const next = neighbour(current, event.key);
  event.preventDefault();
  next?.focus();
}

function neighbour(current, key) {
  const body = current.closest(".cal-body");
  const own = [...body.querySelectorAll("[data-entry]")];
  if (key === "ArrowDown") return own[own.indexOf(current) + 1];
  if (key === "ArrowUp") return own[own.indexOf(current) - 1];
  const bodies = [...calendar.querySelectorAll(".cal-body")].filter((each) => each.querySelector("[data-entry]"));
  const beside = bodies[bodies.indexOf(body) + (key === "ArrowRight" ? 1 : -1)];
  if (!beside) return null;
  const top = current.getBoundingClientRect().top;
  const distance = (each) => Math.abs(each.getBoundingClientRect().top - top);
  return [...beside.querySelectorAll("[data-entry]")].reduce((best, each) => (distance(each) < distance(best) ? each : best));
}

oneTabStop();
moveNow();
scrollToNow();
awaitExpiry();
setInterval(moveNow, 30_000);
listen();
