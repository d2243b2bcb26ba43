// The month view: live updates, and keys.

import { onLetters } from "./calendar-keys.js";
import { daysOfMonth } from "./days-of-month.js";
import { keepFresh } from "./live.js";

const place = document.querySelector("[data-month]");
const { look } = daysOfMonth(place);
onLetters();
keepFresh(place.dataset.live, look).listen();
