// What every page of the console shares. Pages work without it; with it they answer more quickly.

const CHECK_SECONDS = 60;
const TOAST_SECONDS = 6;
const UNDO_SECONDS = 10;
const SENT_SECONDS = 5;

/** Says something for a moment, also to screen readers. `undo` is offered as a button for longer. */
export function toast(text, undo = null) {
  // What is outside an open dialog cannot be used.
  const place = document.querySelector("dialog[open] [data-toasts]") ?? document.querySelector("body > [data-toasts]");
  if (!place) return;
  const note = document.createElement("p");
  note.className = "toast";
  note.textContent = text;
  if (undo) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "button-small button-quiet";
    button.dataset.key = "u";
    button.textContent = "Undo";
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
    toast("Copied.");
  } catch {
    getSelection().selectAllChildren(element);
    toast("Marked: copy it with the keyboard.");
  }
}

/** The session is over: the page that opens instead leads to the sign-in and back. */
export function signedOut() {
  location.reload();
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
document.addEventListener("pointerdown", () => (byKeys = null), { capture: true });
document.addEventListener("change", (event) => {
  if (event.target.matches("[data-submits]") && event.target !== byKeys) event.target.form.requestSubmit();
});

if (document.body.dataset.idleSeconds) watchSession(Number(document.body.dataset.idleSeconds));
