// What every page of the console shares. Pages work without it; with it they answer more quickly.

import { text } from "./texts.js";

const CHECK_SECONDS = 60;
const TOAST_SECONDS = 6;
const UNDO_SECONDS = 10;
const SENT_SECONDS = 5;
const KEPT_SECONDS = 15 * 60; // what was typed, after the session has ended
const ASK_SECONDS = 3;

/** Says something for a moment, also to screen readers. `undo` is offered as a button for longer. */
export function toast(words, undo = null) {
  // What is outside an open dialog cannot be used.
  const place = document.querySelector("dialog[open] [data-toasts]") ?? document.querySelector("body > [data-toasts]");
  if (!place) return;
  const note = document.createElement("p");
  note.className = "toast";
  note.textContent = words;
  if (undo) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "button-small button-quiet";
    button.dataset.key = "u";
    button.textContent = text("undo");
    button.addEventListener("click", () => {
      note.remove();
      undo();
    });
    note.append(button);
  }
  place.append(note);
  setTimeout(() => note.remove(), (undo ? UNDO_SECONDS : TOAST_SECONDS) * 1000);
}

/** Posts a form's fields as the form itself would, with the session's proof. */
export function post(path, fields = {}) {
  return fetch(path, {
    method: "POST",
    headers: { "X-CSRF-Token": document.body.dataset.csrf },
    body: new URLSearchParams(fields),
    redirect: "follow",
  });
}

function switchTheme(event) {
  event.preventDefault();
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  const secure = location.protocol === "https:" ? "; Secure" : "";
  document.cookie = `frontdesk_theme=${root.dataset.theme}; Path=/console; Max-Age=31536000; SameSite=Lax${secure}`;
}

/** Browsers offer the clipboard only over https and on this machine; elsewhere the text is marked for the keyboard. */
async function copy(element) {
  try {
    await navigator.clipboard.writeText(element.textContent.trim());
    toast(text("copied"));
  } catch {
    getSelection().selectAllChildren(element);
    toast(text("marked"));
  }
}

/** Whether somebody has changed a text field, which is what takes time to do again. */
const isTyped = (field) =>
  field.matches("textarea, input:not([type=hidden], [type=radio], [type=checkbox], [type=submit])") && field.value !== field.defaultValue;
const isBegun = (form) => form.method === "post" && [...form.elements].some(isTyped);

/** In a form that was refused or read back the text is not changed, but typed all the same. */
const isTypedHere = () => document.querySelector("[data-begun] form[method=post]") || [...document.forms].some(isBegun);

/** Takes a part of an answer into the page, with whether it answers a form. */
export function adopted(part) {
  part.toggleAttribute("data-begun", part.closest("[data-begun]") !== null);
  return document.adoptNode(part);
}

/**
 * The session is over. A page with nothing typed leads to the sign-in. Otherwise it is kept in this tab, out of sight,
 * until the same person has signed in again; then `resume` goes on with it.
 */
export function signedOut(resume = null) {
  if (document.querySelector("[data-signed-out]")) return;
  if (!isTypedHere()) return location.reload();
  const main = document.getElementById("main");
  main.hidden = true;
  const dialog = document.createElement("dialog");
  dialog.className = "dialog stack";
  dialog.dataset.signedOut = "";
  dialog.setAttribute("aria-label", text("signed_out"));
  const link = Object.assign(document.createElement("a"), { className: "button", href: "/console/sign-in", target: "_blank", textContent: text("sign_in") });
  const leave = Object.assign(document.createElement("button"), { className: "button-quiet", type: "button", textContent: text("discard") });
  dialog.append(
    Object.assign(document.createElement("h2"), { textContent: text("signed_out") }),
    Object.assign(document.createElement("p"), { textContent: text("signed_out_kept") }),
    link,
    leave,
  );
  document.body.append(dialog);
  dialog.addEventListener("cancel", (event) => event.preventDefault());
  leave.addEventListener("click", () => location.reload());
  dialog.showModal();
  const until = Date.now() + KEPT_SECONDS * 1000;
  const asking = setInterval(async () => {
    if (Date.now() > until) return location.reload();
    const answer = await session();
    if (!answer?.ok) return;
    clearInterval(asking);
    const { staff, csrf } = await answer.json();
    if (staff !== document.body.dataset.staff) return location.reload(); // somebody else's work
    document.body.dataset.csrf = csrf;
    for (const field of document.querySelectorAll("input[name=csrf]")) field.value = csrf;
    dialog.remove();
    main.hidden = false;
    toast(text("signed_in_again"));
    resume?.();
  }, ASK_SECONDS * 1000);
}

/** The current session, or null if the service cannot be reached. */
const session = () => fetch("/console/session", { cache: "no-store" }).catch(() => null);

/** Sends a form only while there is a session and a service to take it, so that nothing typed is lost. */
async function checkedSubmit(form, submitter) {
  const answer = await session();
  const send = () => {
    form.dataset.checked = "yes";
    form.requestSubmit(submitter);
  };
  delete form.dataset.sent;
  if (answer?.status === 401) signedOut(send);
  else if (!answer) toast(text("away_kept"));
  else send();
}

/** A page left open shows nothing of patients once its session is over. */
function watchSession(idleSeconds) {
  const ask = async () => {
    const answer = await fetch("/console/alive", { cache: "no-store" }).catch(() => null);
    if (answer?.status === 401) signedOut();
  };
  setTimeout(() => {
    ask();
    setInterval(ask, CHECK_SECONDS * 1000);
  }, (idleSeconds + 5) * 1000);
  addEventListener("pageshow", (event) => event.persisted && ask());
}

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.matches("[data-theme-form]")) return switchTheme(event);
  // A second press while the first is on its way would only be answered the same.
  if (event.defaultPrevented || form.method !== "post") return;
  if (form.dataset.sent) return event.preventDefault();
  form.dataset.sent = "yes";
  setTimeout(() => delete form.dataset.sent, SENT_SECONDS * 1000);
  if (form.dataset.checked || !document.body.dataset.staff) return delete form.dataset.checked;
  event.preventDefault();
  checkedSubmit(form, event.submitter);
});

// While the service is away a link would lead to the browser's own error page.
document.addEventListener("click", async (event) => {
  const link = event.target.closest("a[href^='/console/']:not([target])");
  if (!link || event.defaultPrevented || !("away" in document.body.dataset) || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  if (await session()) location.assign(link.href);
  else toast(text("away_moment"));
});

document.addEventListener("click", (event) => {
  const control = event.target.closest("[data-opens], [data-closes], [data-copy]");
  if (!control) return;
  if (control.dataset.opens) document.getElementById(control.dataset.opens).showModal();
  else if (control.dataset.copy) copy(document.getElementById(control.dataset.copy));
  else control.closest("dialog").close();
});

// A choice made with the pointer is sent at once. Arrow keys and digits only pass by: Enter sends what they chose.
let byKeys = null;
document.addEventListener("keydown", (event) => (byKeys = event.target), { capture: true });
document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !event.target.matches("select[data-submits]")) return;
  event.preventDefault(); // some browsers open the list instead
  event.target.form.requestSubmit();
});
document.addEventListener("pointerdown", () => (byKeys = null), { capture: true });
document.addEventListener("change", (event) => {
  if (event.target.matches("[data-submits]") && event.target !== byKeys) event.target.form.requestSubmit();
});

if (document.body.dataset.idleSeconds) watchSession(Number(document.body.dataset.idleSeconds));
