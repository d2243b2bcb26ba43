// Dates and times as the practice writes them, also in inputs. Without scripts inputs are the browser's own.

import { MONTHS, text as said } from "./texts.js";

const { times, dates } = document.documentElement.dataset;
const ENGLISH = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const OWN = MONTHS.map((name) => name.toLowerCase().replace(".", ""));
const YEARS_AHEAD = 10; // two digits of a year further ahead are of the last century
const LAST_OF_AFTERNOON = 6; // on a twelve-hour clock 2:30 is in the afternoon, 7:30 in the morning
const two = (number) => String(number).padStart(2, "0");

/** "14:30" as the practice writes it. */
export function writtenTime(time) {
  if (times !== "12h" || !time) return time;
  const [hour, minute] = time.split(":");
  return `${((Number(hour) + 11) % 12) + 1}:${minute} ${Number(hour) < 12 ? "AM" : "PM"}`;
}

/** Any usual form of a time as "14:30"; null if it is none. */
export function readTime(text) {
  const found = /^(\d{1,2}?)(?:[:.h ]?(\d{2}))?\s*(?:([ap])\.?(?:m\.?)?)?$/i.exec(text.trim());
  if (!found) return null;
  let hour = Number(found[1]);
  const minute = Number(found[2] ?? 0);
  const half = found[3]?.toLowerCase();
  if (half && (hour < 1 || hour > 12)) return null;
  if (half) hour = (hour % 12) + (half === "p" ? 12 : 0);
  else if (times === "12h" && hour >= 1 && hour <= LAST_OF_AFTERNOON && found[1].length === 1) hour += 12;
  return hour < 24 && minute < 60 ? `${two(hour)}:${two(minute)}` : null;
}

/** "2026-11-23" as the practice writes it. */
function writtenDay(iso) {
  if (dates === "yearFirst" || !iso) return iso;
  const [year, month, day] = iso.split("-").map(Number);
  return said(dates === "monthFirst" ? "month_first" : "day_first", { day, month: MONTHS[month - 1], year });
}

/** Any usual form of a date as "2026-11-23"; null if it is none. Without a year it is in this one. */
function readDay(text) {
  const spaced = text.trim().replace(dates === "yearFirst" ? /^(\d{4})(\d\d)(\d\d)$/ : /^(\d\d)(\d\d)(\d{4})$/, "$1 $2 $3");
  const parts = spaced.toLowerCase().match(/\d+|\p{L}+/gu) ?? [];
  const names = parts.filter((part) => monthOf(part) > 0);
  const numbers = parts.filter((part) => /^\d{1,4}$/.test(part));
  if (names.length + numbers.length < 2 || names.length > 1 || numbers.length + names.length > 3) return null;
  let year, month, day;
  if (names.length) {
    month = monthOf(names[0]);
    [day, year] = numbers[0].length === 4 ? [numbers[1], numbers[0]] : numbers;
  } else if (numbers[0].length === 4) [year, month, day] = numbers;
  else {
    [day, month, year] = numbers;
    const monthFirst = dates === "monthFirst" && !text.includes(".");
    if (monthFirst ? Number(day) <= 12 : Number(month) > 12) [day, month] = [month, day];
  }
  return valid(fullYear(year), Number(month), Number(day));
}

/** The number of a month by its name, also shortened to three letters; 0 if it is none. */
function monthOf(word) {
  const begins = (name) => word.startsWith(name) || (word.length >= 3 && name.startsWith(word));
  return (OWN.findIndex(begins) + 1) || ENGLISH.findIndex(begins) + 1;
}

function fullYear(year) {
  const now = new Date().getFullYear();
  if (year === undefined) return now;
  if (year.length > 2) return Number(year);
  const recent = Math.floor(now / 100) * 100 + Number(year);
  return recent > now + YEARS_AHEAD ? recent - 100 : recent;
}

function valid(year, month, day) {
  const found = new Date(Date.UTC(year, month - 1, day));
  const same = found.getUTCFullYear() === year && found.getUTCMonth() === month - 1 && found.getUTCDate() === day;
  return same ? `${String(year).padStart(4, "0")}-${two(month)}-${two(day)}` : null;
}

// Inputs: the text is what people see and type; the browser's own input behind it holds what is sent.

const KINDS = {
  date: { read: readDay, write: writtenDay, example: writtenDay("2026-11-23"), what: "date", help: "write_date" },
  time: { read: readTime, write: writtenTime, example: writtenTime("14:30"), what: "time", help: "write_time" },
};

function byText(own) {
  const { read, write, example, what, help } = KINDS[own.type];
  const text = document.createElement("input");
  for (const { name, value } of [...own.attributes]) {
    if (["id", "required", "autofocus", "data-submits"].includes(name) || name.startsWith("aria-")) {
      text.setAttribute(name, value);
      own.removeAttribute(name);
    }
  }
  text.type = "text";
  text.autocomplete = "off";
  text.defaultValue = write(own.value);
  text.placeholder = said("example", { example });
  const field = document.createElement("span");
  field.className = `typed typed-${what}`;
  own.before(field);
  own.dataset.typed = "";
  own.autocomplete = "off"; // a browser would restore it and not the text
  own.tabIndex = -1;
  own.setAttribute("aria-hidden", "true");
  field.append(text, ...(own.type === "date" && !("noPicker" in own.dataset) ? [picker(own)] : []), own);
  text.addEventListener("input", () => text.setCustomValidity(""));
  text.addEventListener("change", () => {
    const value = text.value.trim() ? read(text.value) : "";
    own.type = value === null ? "text" : what; // a form that does not validate sends what was typed, and is refused
    own.value = value ?? text.value;
    if (value) text.value = write(value);
    text.setCustomValidity(value === null ? said(help, { example }) : own.validationMessage);
  });
  own.addEventListener("change", () => {
    text.value = write(own.value);
    text.setCustomValidity("");
    if ("submits" in text.dataset) own.form.requestSubmit();
  });
}

function picker(own) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "typed-picker";
  button.setAttribute("aria-label", said("picker"));
  button.textContent = "▾";
  button.addEventListener("click", () => own.showPicker?.());
  return button;
}

const inputs = (root) => root.querySelectorAll("input[type=date]:not([data-typed]), input[type=time]:not([data-typed])");

inputs(document).forEach(byText);
new MutationObserver(() => inputs(document).forEach(byText)).observe(document.body, { childList: true, subtree: true });
