// The grid of the calendar: brings changes in, and keeps the place and the focus.

import { toast } from "./console.js";
import { keepFresh, tagOf } from "./live.js";
import { text } from "./texts.js";

const NEW_SECONDS = 8;
const STEP = 5; // minutes a row

export const calendar = document.querySelector("[data-calendar]");
export const entries = () => [...calendar.querySelectorAll("[data-entry]")];
export const entryOf = (id) => calendar.querySelector(`[data-entry="${CSS.escape(id)}"]`);
export const spoken = (entry) =>
  [".entry-time", ".entry-name"].map((part) => entry.querySelector(part).textContent.replace(/\s+/g, " ").trim()).join(" ");
let tag = calendar.dataset.tag;

// Looking again

async function look() {
  const known = [...calendar.querySelectorAll("[data-column]")].map((column) => column.dataset.column);
  const answer = await fetch(calendar.dataset.grid, {
    headers: { "If-None-Match": `"${tag}"`, "X-Calendar-Columns": known.join(",") },
    cache: "no-store",
  }).catch(() => null);
  if (answer?.status === 200) replace(await answer.text());
  if (answer?.status === 200 || answer?.status === 304) tag = tagOf(answer);
  calendar.dispatchEvent(new CustomEvent("looked"));
  return answer;
}

export const { refresh, listen } = keepFresh(calendar.dataset.live, look);

/** Columns that have not changed come without their content and stay as they are. If only proposals have, the grid stays. */
function replace(html) {
  const page = document.createElement("template");
  page.innerHTML = html; // of our own server, escaped there
  if (!page.content.querySelector(".cal-scroll")) return calendar.querySelector("[data-waiting]").replaceWith(page.content);
  const before = new Map(entries().map((entry) => [entry.dataset.entry, spoken(entry)]));
  const had = new Map([...calendar.querySelectorAll("[data-column]")].map((column) => [column.dataset.column, column]));
  const focused = document.activeElement?.dataset?.entry;
  const stop = calendar.querySelector('[data-entry][tabindex="0"]')?.dataset.entry;
  const old = calendar.querySelector(".cal-scroll");
  const [top, left] = [old.scrollTop, old.scrollLeft];
  for (const column of page.content.querySelectorAll("[data-unchanged]")) column.replaceWith(had.get(column.dataset.column));
  calendar.replaceChildren(page.content);
  calendar.querySelector(".cal-scroll").scrollTo({ top, left, behavior: "instant" });
  oneTabStop(stop);
  moveNow();
  awaitExpiry();
  if (focused) entryOf(focused)?.focus({ preventScroll: true });
  tell(before);
  calendar.dispatchEvent(new CustomEvent("replaced"));
}

/** A hold that expires sends no word. */
let expiry = 0;

export function awaitExpiry() {
  clearTimeout(expiry);
  const ends = [...calendar.querySelectorAll("[data-held-until]")].map((held) => Number(held.dataset.heldUntil) * 1000);
  if (ends.length) expiry = setTimeout(refresh, Math.max(Math.min(...ends) - Date.now(), 0) + 1000);
}

/** What appeared and what went, as somebody else changed it. */
function tell(before) {
  const now = new Map(entries().map((entry) => [entry.dataset.entry, entry]));
  const added = [...now].filter(([id]) => !before.has(id)).map(([, entry]) => entry);
  const gone = [...before].filter(([id]) => !now.has(id)).map(([, words]) => words);
  for (const entry of added) {
    const item = entry.closest(".entry");
    item.classList.add("is-new");
    setTimeout(() => item.classList.remove("is-new"), NEW_SECONDS * 1000);
  }
  if (added.length === 1) toast(text("new", { appointment: spoken(added[0]) }));
  else if (added.length > 1) toast(text("new_several", { count: added.length }));
  if (gone.length === 1) toast(text("gone", { appointment: gone[0] }));
  else if (gone.length > 1) toast(text("gone_several", { count: gone.length }));
}

// One tab stop for the whole grid: arrow keys go on from there

export function oneTabStop(id) {
  const all = entries();
  const stop = (id && entryOf(id)) || all[0];
  for (const entry of all) entry.tabIndex = entry === stop ? 0 : -1;
}

calendar.addEventListener("focusin", (event) => {
  const entry = event.target.closest("[data-entry]");
  if (!entry || entry.tabIndex === 0) return;
  for (const other of calendar.querySelectorAll('[data-entry][tabindex="0"]')) other.tabIndex = -1;
  entry.tabIndex = 0;
});

// The line of the hour

export function moveNow() {
  for (const day of calendar.querySelectorAll("[data-begins]")) {
    const row = Math.floor((Date.now() / 60000 - Number(day.dataset.begins)) / STEP) + 1;
    for (const line of day.querySelectorAll("[data-now]")) {
      if (row >= 1) line.className = `now-line at-${row}`;
    }
  }
}

export function scrollToNow() {
  const scroll = calendar.querySelector(".cal-scroll");
  const line = scroll.querySelector("[data-now]");
  if (line && scroll.scrollHeight > scroll.clientHeight) scroll.scrollTop = Math.max(0, line.offsetTop - 120);
  const shown = scroll.querySelector(".is-new a");
  shown?.scrollIntoView({ block: "center", inline: "nearest" });
}
