// The days of a month: fetched and brought up to date, and walked through with the arrow keys.

import { signedOut, toast } from "./console.js";
import { tagOf } from "./live.js";
import { text } from "./texts.js";

const STEPS = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -7, ArrowDown: 7 };

/** Returns functions that look again and that go to a month; `look` returns the answer, or null if there was none. */
export function daysOfMonth(place) {
  let address = place.dataset.month;
  let tag = place.dataset.tag ?? "";
  const days = () => [...place.querySelectorAll("[data-date]")];
  const dayOf = (date) => place.querySelector(`[data-date="${date}"]`);

  /** One tab stop: the day that has it, the day shown, or the first. */
  function oneTabStop(date) {
    const stop = dayOf(date) ?? place.querySelector("[data-date][aria-current]") ?? place.querySelector("td:not(.is-outside) [data-date]");
    for (const day of days()) day.tabIndex = day === stop ? 0 : -1;
    return stop;
  }

  async function look() {
    const asked = address;
    const answer = await fetch(asked, { headers: { "If-None-Match": `"${tag}"` }, cache: "no-store" }).catch(() => null);
    if (answer?.status === 200 && asked === address) {
      const html = await answer.text();
      const focused = place.contains(document.activeElement) ? document.activeElement.dataset.date : null; // after the wait: it may have moved
      const stop = place.querySelector('[data-date][tabindex="0"]')?.dataset.date;
      show(place, html);
      tag = tagOf(answer);
      oneTabStop(focused ?? stop);
      if (focused) dayOf(focused)?.focus();
    }
    return answer;
  }

  /** Shows another month and goes to a day of it. */
  async function goTo(month, date = null) {
    address = month;
    tag = "";
    const answer = await look();
    if (answer?.status === 401) return signedOut();
    if (answer?.status !== 200) return toast(text("away"));
    if (date) oneTabStop(date)?.focus();
  }

  place.addEventListener("click", (event) => {
    const step = event.target.closest("[data-month-step]");
    if (!step) return;
    event.preventDefault();
    goTo(step.getAttribute("href"));
  });

  place.addEventListener("keydown", (event) => {
    const date = event.target.dataset?.date;
    if (!date || event.ctrlKey || event.metaKey || event.altKey) return;
    const to = moved(date, event.key);
    if (!to) return;
    event.preventDefault();
    const day = dayOf(to);
    if (day && day.closest("td:not(.is-outside)")) return oneTabStop(to).focus();
    const steps = place.querySelectorAll("[data-month-step]");
    goTo(steps[to < date ? 0 : 1].getAttribute("href"), to);
  });

  oneTabStop();
  return { look, goTo, focus: () => oneTabStop()?.focus() };
}

function show(place, html) {
  const page = document.createElement("template");
  page.innerHTML = html; // of our own server, escaped there
  place.replaceChildren(page.content);
}

/** The day that a key leads to. */
function moved(date, key) {
  const [year, month, day] = date.split("-").map(Number);
  const at = (months, days) => new Date(Date.UTC(year, month - 1 + months, days)).toISOString().slice(0, 10);
  const weekday = (new Date(Date.UTC(year, month - 1, day)).getUTCDay() + 6) % 7;
  if (key in STEPS) return at(0, day + STEPS[key]);
  if (key === "Home") return at(0, day - weekday);
  if (key === "End") return at(0, day + 6 - weekday);
  const months = { PageUp: -1, PageDown: 1 }[key];
  if (!months) return null;
  const last = new Date(Date.UTC(year, month + months, 0)).getUTCDate();
  return at(months, Math.min(day, last));
}
