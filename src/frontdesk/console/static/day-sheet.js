// Prints the page: the day sheet, or the list of whom to call.

document.querySelector("[data-print]").addEventListener("click", () => print());
