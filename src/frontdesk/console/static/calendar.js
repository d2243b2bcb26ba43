// The calendar page: live updates, keyboard navigation, and appointments beside the grid.
// Everything here also works without: the page is a list of links.

import { toast } from "./console.js";

const PAUSE_MS = 300;
const NEW_SECONDS = 8;

const calendar = document.querySelector("[data-calendar]");
const panel = document.querySelector("[data-panel]");
const panelBody = panel.querySelector("[data-panel-body]");
let tag = calendar.dataset.tag;

const entries = () => [...calendar.querySelectorAll("[data-entry]")];
const entryOf = (id) => calendar.querySelector(`[data-entry="${CSS.escape(id)}"]`);

// Looking again

let looking = false;
let lookAgain = false;

async function refresh() {
  if (looking) {
    lookAgain = true;
    return;
  }
  looking = true;
  try {
    const answer = await fetch(calendar.dataset.grid, {
      headers: { "If-None-Match": `"${tag}"` },
      cache: "no-store",
    }).catch(() => null);
    if (answer?.status === 401) return location.reload();
    if (answer?.status === 200) replace(await answer.text(), answer.headers.get("ETag"));
    await new Promise((done) => setTimeout(done, PAUSE_MS));
  } finally {
    looking = false;
  }
  if (lookAgain) {
    lookAgain = false;
    refresh();
  }
}

function replace(html, newTag) {
  const before = new Set(entries().map((entry) => entry.dataset.entry));
  const focused = document.activeElement?.dataset?.entry;
  const old = calendar.querySelector(".cal-scroll");
  const [top, left] = [old.scrollTop, old.scrollLeft];
  calendar.innerHTML = html; // of our own server, escaped there
  const scroll = calendar.querySelector(".cal-scroll");
  scroll.scrollTo({ top, left, behavior: "instant" });
  tag = newTag?.replaceAll('"', "") ?? "";
  if (focused) entryOf(focused)?.focus({ preventScroll: true });
  const added = entries().filter((entry) => !before.has(entry.dataset.entry));
  for (const entry of added) {
    const item = entry.closest(".entry");
    item.classList.add("is-new");
    setTimeout(() => item.classList.remove("is-new"), NEW_SECONDS * 1000);
  }
  if (added.length === 1) toast(`New: ${spoken(added[0])}`);
  else if (added.length > 1) toast(`${added.length} new appointments`);
  if (added.length) calendar.dispatchEvent(new CustomEvent("added", { detail: added.length }));
}

const spoken = (entry) =>
  [entry.querySelector(".entry-time"), entry.querySelector(".entry-name")].map((part) => part.textContent.trim()).join(" ");

// The stream of words that something changed. A hidden page needs none: browsers allow few connections at a time.

let stream = null;

function listen() {
  if (stream || document.hidden) return;
  stream = new EventSource(calendar.dataset.live);
  stream.addEventListener("open", () => {
    live(true);
    refresh();
  });
  stream.addEventListener("calendar", refresh);
  stream.addEventListener("signed-out", () => location.reload());
  stream.addEventListener("error", () => {
    live(false);
    if (stream?.readyState === EventSource.CLOSED) {
      stream = null;
      refresh(); // checks whether the session is still valid
      setTimeout(listen, 5000 + Math.random() * 5000);
    }
  });
}

function live(on) {
  const state = document.querySelector("[data-live-state]");
  state.classList.toggle("is-live", on);
  state.querySelector("[data-live-text]").textContent = on ? "Live" : "Not live";
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden) {
    stream?.close();
    stream = null;
    live(false);
  } else listen();
});
addEventListener("pagehide", () => stream?.close());

// The line of the hour

function moveNow() {
  for (const day of calendar.querySelectorAll("[data-begins]")) {
    const row = Math.floor((Date.now() / 60000 - Number(day.dataset.begins)) / 5) + 1;
    for (const line of day.querySelectorAll("[data-now]")) {
      if (row >= 1) line.className = `now-line at-${row}`;
    }
  }
}

function scrollToNow() {
  const scroll = calendar.querySelector(".cal-scroll");
  const line = scroll.querySelector("[data-now]");
  if (line && scroll.scrollHeight > scroll.clientHeight) scroll.scrollTop = Math.max(0, line.offsetTop - 120);
  const shown = scroll.querySelector(".is-new a");
  shown?.scrollIntoView({ block: "center", inline: "nearest" });
}

// One appointment beside the calendar

let opener = null;

async function show(address) {
  const answer = await fetch(address).catch(() => null);
  if (answer?.status === 401) return location.reload();
  if (!answer || !take(await answer.text())) return location.assign(address);
  if (!panel.open) panel.showModal();
  panel.scrollTop = 0;
}

function take(html) {
  const page = new DOMParser().parseFromString(html, "text/html");
  const found = page.getElementById("appointment");
  if (!found) return false;
  panelBody.replaceChildren(document.adoptNode(found));
  const notice = page.querySelector("main > .notice");
  if (notice) toast(notice.textContent.trim());
  return true;
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

panel.addEventListener("submit", async (event) => {
  event.preventDefault();
  event.stopPropagation(); // the page's own guard against a second press would keep this form for ever
  const form = event.target;
  const buttons = panel.querySelectorAll("button");
  for (const button of buttons) button.disabled = true;
  const answer = await fetch(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)) }).catch(() => null);
  if (!answer) {
    for (const button of buttons) button.disabled = false;
    return toast("The service cannot be reached. Try again.");
  }
  if (!take(await answer.text())) return location.reload();
  panel.querySelector("h1")?.setAttribute("tabindex", "-1");
  panel.querySelector("h1")?.focus();
  refresh();
});

panel.addEventListener("click", (event) => {
  if (event.target === panel) panel.close();
});
panel.addEventListener("close", () => {
  panelBody.replaceChildren();
  if (opener) entryOf(opener)?.focus();
});

// A press on open time starts a booking there

function bookAt(event) {
  const column = event.target.closest(".cal-body[data-provider]");
  if (!column || event.target !== column || matchMedia("(max-width: 48rem)").matches) return;
  const day = column.closest("[data-day]").dataset.day;
  location.assign(`/console/book?date=${day}&provider=${column.dataset.provider}`);
}

// Keys

const lettersOn = document.querySelector("[data-keys-on]");
lettersOn.checked = localStorage.getItem("frontdesk-letters") !== "off";
lettersOn.addEventListener("change", () => localStorage.setItem("frontdesk-letters", lettersOn.checked ? "on" : "off"));

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (event.target.closest("input:not([type=checkbox]), select, textarea, [contenteditable]")) return;
  if (event.key.startsWith("Arrow")) return walk(event);
  if (!lettersOn.checked) return;
  if (event.key === "?") {
    event.preventDefault();
    document.getElementById("keys").showModal();
    return;
  }
  const link = /^[a-z]$/.test(event.key) ? document.querySelector(`[data-key="${event.key}"]`) : null;
  if (link) {
    event.preventDefault();
    link.click();
  }
});

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

moveNow();
scrollToNow();
setInterval(moveNow, 30_000);
listen();
