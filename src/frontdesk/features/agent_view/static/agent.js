// The agent's view without reloading: a step's answer is added below the ones before it. Everything here is also
// possible with plain forms; then only the last step is on the page.

import { toast } from "./console.js";
import { text } from "./texts.js";

let busy = false;

function take(page, id) {
  document.getElementById(id).replaceWith(page.getElementById(id));
}

// The answer to a form, put where it belongs. False where there is nothing to go on with.
async function send(form, submitter) {
  const body = new URLSearchParams(new FormData(form, submitter));
  const answer = await fetch(form.action, { method: "POST", body, headers: { Accept: "text/html" } });
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  if (!answer.ok || !page.getElementById("agent-next")) {
    document.querySelector("main").replaceWith(page.querySelector("main"));
    return false;
  }
  const before = document.getElementById("agent-ran").firstElementChild;
  const ran = page.getElementById("agent-ran").firstElementChild;
  if (before && ran) {
    before.open = false;
    document.getElementById("agent-done").append(before);
  }
  if (ran) take(page, "agent-ran");
  take(page, "agent-rail");
  take(page, "agent-next");
  return !document.querySelector("#agent-form[data-again]");
}

async function once(work) {
  if (busy) return;
  busy = true;
  try {
    await work();
  } catch {
    toast(text("away"));
    for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent;
  } finally {
    busy = false;
  }
}

function show() {
  const heading = document.querySelector("#agent-ran h2");
  const target = heading ?? document.getElementById("agent-next-title");
  if (!target) return;
  target.closest(".card").scrollIntoView({ block: "start" });
  (heading ?? document.querySelector("#agent-form input:not([type=hidden]), #agent-form select"))?.focus({ preventScroll: true });
}

document.addEventListener("submit", (event) => {
  const form = event.target;
  // console.js submits it again once it has found the session.
  if (event.defaultPrevented || !form.closest("#agent-next")) return;
  event.preventDefault();
  once(async () => {
    await send(form, event.submitter);
    show();
  });
});

document.addEventListener("click", async (event) => {
  const copy = event.target.closest("[data-copies]");
  if (copy) {
    await navigator.clipboard.writeText(copy.dataset.copies);
    toast(text("copied"));
  }
  if (event.target.closest("#agent-run-on")) {
    once(async () => {
      let form = document.getElementById("agent-form");
      while (form?.dataset.kind === "read" && await send(form, form.querySelector("[value=run]"))) {
        form = document.getElementById("agent-form");
      }
      // The challenge itself changes nothing, and is the point of it all.
      if (form?.dataset.kind === "write" && !("again" in form.dataset)) await send(form, form.querySelector("[value=run]"));
      show();
    });
  }
});
