// Takes the one-time token from behind the # into the form, and out of the address and the history.

const form = document.querySelector("[data-sign-in]");
const token = location.hash.slice(1);
if (token) {
  form.elements.link.value = token;
  history.replaceState(null, "", location.pathname + location.search);
  form.querySelector("[data-link-field]").hidden = true;
  for (const other of document.querySelectorAll("[data-other-way]")) other.remove();
  form.querySelector("button").focus();
}
