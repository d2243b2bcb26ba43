// Takes the link's secret from behind the # into the form. It stays in the address: the page can be opened again.

const form = document.querySelector("[data-open]");

function take() {
  const token = location.hash.slice(1);
  if (!token) return;
  form.elements.link.value = token;
  form.querySelector("[data-link-field]").hidden = true;
}

take();
addEventListener("hashchange", take);
