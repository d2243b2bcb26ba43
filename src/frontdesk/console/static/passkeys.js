// Forms that the browser's passkeys answer. They stay hidden in browsers without passkeys.

import { text } from "./texts.js";

const EXPIRED = text("passkey_expired");

async function answer(form) {
  const given = await fetch(form.dataset.options, { method: "POST", body: new URLSearchParams(new FormData(form)) });
  if (!given.ok) throw new Error(EXPIRED);
  const options = await given.json();
  const credential =
    form.dataset.passkey === "create"
      ? await navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options) })
      : await navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options) });
  form.elements.credential.value = JSON.stringify(credential.toJSON());
  form.submit();
}

function explain(error) {
  if (error.name === "InvalidStateError") return text("passkey_known");
  return error.message === EXPIRED ? EXPIRED : text("passkey_cancelled");
}

async function submitted(event) {
  event.preventDefault();
  const form = event.target;
  const message = form.querySelector("[data-error]");
  const button = form.querySelector("button");
  message.hidden = button.disabled = true;
  try {
    await answer(form);
  } catch (error) {
    message.querySelector("span").textContent = explain(error);
    message.hidden = button.disabled = false;
    button.focus();
  }
}

const supported = Boolean(window.PublicKeyCredential?.parseCreationOptionsFromJSON);
for (const form of document.querySelectorAll("[data-passkey]")) {
  form.hidden = !supported;
  form.addEventListener("submit", submitted);
}
for (const note of document.querySelectorAll("[data-no-passkeys]")) note.hidden = supported;
