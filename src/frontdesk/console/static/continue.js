// Goes on with the changes that one request did not get to. Without it, the button does.

document.querySelector("[data-continue]")?.requestSubmit();
