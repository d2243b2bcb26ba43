// Allows the buttons that agree once the page has been visible and focused for a second. A page of an attacker may open
// this one under the pointer of somebody who is pressing twice: the second press must not agree to anything.

const SEEN_AFTER = 1000; // milliseconds
const buttons = document.querySelectorAll("[data-when-seen]");
let timer;

function watch() {
  clearTimeout(timer);
  for (const button of buttons) button.disabled = true;
  if (document.visibilityState === "visible" && document.hasFocus()) {
    timer = setTimeout(() => {
      for (const button of buttons) button.disabled = false;
    }, SEEN_AFTER);
  }
}

for (const change of ["focus", "blur", "pageshow"]) addEventListener(change, watch);
document.addEventListener("visibilitychange", watch);
watch();
