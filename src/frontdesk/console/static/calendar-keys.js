// Letter shortcuts of the calendar: links and buttons with data-key, and what a view adds.

const lettersOn = document.querySelector("[data-keys-on]");
lettersOn.checked = localStorage.getItem("frontdesk-letters") !== "off";
lettersOn.addEventListener("change", () => localStorage.setItem("frontdesk-letters", lettersOn.checked ? "on" : "off"));

/** `own` handles a key of the view first, and says whether it did. */
export function onLetters(own = () => false) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]") || !lettersOn.checked) return;
    if (event.target.closest("input:not([type=checkbox]), select, textarea, [contenteditable]")) return;
    if (event.key === "?") document.getElementById("keys").showModal();
    else if (!own(event)) {
      const control = /^[a-z+-]$/.test(event.key) ? document.querySelector(`[data-key="${event.key}"]`) : null;
      if (!control) return;
      control.click();
    }
    event.preventDefault();
  });
}
