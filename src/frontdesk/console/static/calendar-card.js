// The card of an appointment under the pointer or the focus: everything that the grid has no room for.

import { calendar } from "./calendar-grid.js";
import { text } from "./texts.js";

const DELAY_MS = 250;
const GAP = 6; // pixels beside the appointment

const card = document.querySelector("[data-card]");
let shown = null;
let timer = null;

const part = (entry, selector) => entry.querySelector(selector)?.textContent.replace(/\s+/g, " ").trim() ?? "";

const capitalized = (words) => words.charAt(0).toLocaleUpperCase() + words.slice(1);

function line(words, kind) {
  const element = document.createElement(kind === "name" ? "strong" : "p");
  if (kind === "state") element.className = "cal-card-state";
  element.dir = "auto";
  element.textContent = words;
  return element;
}

function show(entry) {
  const { born, phone, procedure, location, moved, override } = entry.dataset;
  const provider = entry.closest(".cal-column").querySelector("h3").textContent;
  card.replaceChildren(
    line(part(entry, ".entry-name"), "name"),
    line(text(moved === undefined ? "card_state" : "card_state_moved", { time: part(entry, ".entry-time"), state: part(entry, ".entry-state") }), "state"),
    line([part(entry, ".entry-visit"), procedure].filter(Boolean).join(": ")),
    line([provider, location].filter(Boolean).join(", ")),
    ...(override ? [line(text("override", { rules: override }))] : []),
    ...[born && text("born", { day: born }), phone, capitalized(part(entry, ".entry-by"))].filter(Boolean).map((words) => line(words)),
  );
  if (!card.matches(":popover-open")) card.showPopover();
  place(entry.getBoundingClientRect());
  shown?.removeAttribute("aria-describedby");
  shown = entry;
  entry.setAttribute("aria-describedby", card.id);
}

function place(beside) {
  const { width, height } = card.getBoundingClientRect();
  const right = beside.right + GAP;
  const left = right + width < innerWidth ? right : Math.max(GAP, beside.left - width - GAP);
  card.style.left = `${left}px`;
  card.style.top = `${Math.max(GAP, Math.min(beside.top, innerHeight - height - GAP))}px`;
}

export function hideCard() {
  clearTimeout(timer);
  shown?.removeAttribute("aria-describedby");
  shown = null;
  if (card.matches(":popover-open")) card.hidePopover();
}

const later = (work) => {
  clearTimeout(timer);
  timer = setTimeout(work, DELAY_MS);
};
const wide = () => !matchMedia("(max-width: 48rem)").matches;

calendar.addEventListener("pointerover", (event) => {
  const entry = event.target.closest("[data-entry]");
  if (entry && wide() && event.pointerType === "mouse" && !event.buttons) later(() => entry.isConnected && show(entry));
});
calendar.addEventListener("pointerout", (event) => {
  if (event.target.closest("[data-entry]")) later(hideCard);
});
card.addEventListener("pointerenter", () => clearTimeout(timer));
card.addEventListener("pointerleave", () => later(hideCard));
calendar.addEventListener("focusin", (event) => {
  const entry = event.target.closest("[data-entry]");
  if (entry?.matches(":focus-visible") && wide()) later(() => entry === document.activeElement && show(entry));
});
calendar.addEventListener("focusout", hideCard);
calendar.addEventListener("scroll", hideCard, { capture: true });
calendar.addEventListener("click", hideCard);
calendar.addEventListener("replaced", hideCard);
document.addEventListener("keydown", (event) => event.key === "Escape" && hideCard());
