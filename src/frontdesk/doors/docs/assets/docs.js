// What the pages gain from script: copying, filtering, and the place in the contents. Without it nothing is missing.

const said = document.querySelector(".said");

for (const sample of document.querySelectorAll(".sample")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.setAttribute("aria-label", `Copy: ${sample.querySelector("figcaption").textContent}`);
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(sample.querySelector("code").textContent);
      button.textContent = said.textContent = "Copied";
    } catch {
      button.textContent = said.textContent = "Not allowed";
    }
    setTimeout(() => (button.textContent = "Copy"), 1500);
  });
  sample.querySelector("figcaption").append(button);
}

const contents = document.querySelector("#contents");
const label = contents.querySelector(".filter");
const filter = label.querySelector("input");
const findable = [...document.querySelectorAll("[data-find]")];
const parts = [...document.querySelectorAll(".group, .side section")].filter((part) => part.querySelector("[data-find]"));

function applyFilter() {
  const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const element of findable) {
    element.hidden = !words.every((word) => element.dataset.find.includes(word));
  }
  for (const part of parts) {
    part.hidden = !part.querySelector("[data-find]:not([hidden])");
  }
  const left = findable.filter((element) => element.matches(".op") && !element.hidden).length;
  said.textContent = words.length ? `${left} shown` : "";
}

label.hidden = false;
filter.addEventListener("input", applyFilter);
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !event.target.closest("input") && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    if (getComputedStyle(contents).display === "none") contents.showPopover();
    filter.focus();
  } else if (event.key === "Escape" && event.target === filter) {
    filter.value = "";
    applyFilter();
  }
});

const links = new Map([...document.querySelectorAll(".side li a")].map((link) => [link.hash.slice(1), link]));
contents.addEventListener("click", (event) => {
  if (event.target.closest("li a") && contents.matches(":popover-open")) contents.hidePopover();
});

let current;
const watcher = new IntersectionObserver(
  (entries) => {
    for (const entry of entries) {
      const link = links.get(entry.target.querySelector("[id]").id);
      if (!entry.isIntersecting || !link) continue;
      current?.removeAttribute("aria-current");
      current = link;
      link.setAttribute("aria-current", "true");
      const [place, frame] = [link.getBoundingClientRect(), contents.getBoundingClientRect()];
      if (place.top < frame.top || place.bottom > frame.bottom) {
        contents.scrollTop += place.top - frame.top - frame.height / 3;
      }
    }
  },
  { rootMargin: "-15% 0px -80% 0px" },
);
for (const section of document.querySelectorAll(".op, main > section:not(.hero, .group)")) watcher.observe(section);
