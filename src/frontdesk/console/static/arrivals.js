// The arrivals board: live updates, steps without leaving the page, and a filter by name.
// Everything here also works without: each step is a form.

import { signedOut, toast } from "./console.js";
import { keepFresh, tagOf } from "./live.js";
import { text } from "./texts.js";

const MINUTE_MS = 60_000;

const board = document.querySelector("[data-board]");
const find = document.querySelector("[data-find]");
let tag = board.dataset.tag;

async function look() {
  const answer = await fetch(board.dataset.lists, { headers: { "If-None-Match": `"${tag}"` }, cache: "no-store" }).catch(() => null);
  if (answer?.status === 200) {
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    show(page.body, tagOf(answer));
  }
  return answer;
}

/** The focus stays with the patient, wherever the board now has them. */
function show(lists, newTag) {
  const [before, now] = [board, lists].map((each) => each.querySelector("[data-day]").dataset.day);
  if (before !== now) return location.reload(); // the heading and the links are of the day, too
  const focused = document.activeElement?.closest?.("[data-visit]")?.dataset.visit;
  board.replaceChildren(...lists.childNodes);
  tag = newTag;
  tellMinutes();
  filter();
  if (focused) focusOn(focused);
}

function focusOn(visit) {
  const item = board.querySelector(`[data-visit="${CSS.escape(visit)}"]`);
  (item?.querySelector("button") ?? item?.querySelector("a") ?? board.querySelector("h2"))?.focus({ preventScroll: true });
}

/** Sends a step and shows what came of it. */
async function send(form) {
  const visit = form.action.split("/").at(-1);
  const answer = await fetch(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)) }).catch(() => null);
  if (!answer) return toast(text("away"));
  if (answer.status === 401) return signedOut(() => send(form));
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const found = page.querySelector("[data-board]");
  if (!found) return location.assign(answer.url); // the step needs more, such as a reason
  show(found, found.dataset.tag);
  focusOn(visit);
  const undo = page.querySelector("form[data-undo]");
  const notice = page.querySelector("main > .notice");
  if (notice) toast(notice.textContent.trim(), undo && (() => send(document.adoptNode(undo))));
}

board.addEventListener("submit", (event) => {
  event.preventDefault();
  event.stopPropagation(); // the page's own guard against a second press would keep this form forever
  for (const button of event.target.closest(".visit-steps").querySelectorAll("button")) button.disabled = true;
  send(event.target).finally(() => {
    for (const button of event.target.closest(".visit-steps")?.querySelectorAll("button") ?? []) button.disabled = false;
  });
});

function tellMinutes() {
  for (const each of board.querySelectorAll("[data-since]")) {
    const minutes = Math.floor((Date.now() / 1000 - Number(each.dataset.since)) / 60);
    each.textContent = minutes >= 1 ? text("ago", { minutes }) : "";
  }
}

const plain = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();

function filter() {
  const wanted = plain(find.value).split(/\s+/);
  for (const visit of board.querySelectorAll("[data-visit]")) {
    const name = plain(visit.querySelector(".visit-head").textContent);
    visit.hidden = !wanted.every((word) => name.includes(word));
  }
}

find.addEventListener("input", filter);
const { refresh, listen } = keepFresh(board.dataset.live, look);
tellMinutes();
setInterval(refresh, MINUTE_MS); // who is late by now
setInterval(tellMinutes, MINUTE_MS / 4);
listen();
