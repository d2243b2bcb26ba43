// The day sheet's one button.

document.querySelector("[data-print]").addEventListener("click", () => print());
