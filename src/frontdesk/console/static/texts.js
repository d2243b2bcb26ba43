// The texts of scripts, in the language of the page: `script_texts.html` has them all.

const texts = JSON.parse(document.getElementById("texts").content.textContent);

/** A text with its placeholders, such as {count}, filled in. */
export const text = (key, values = {}) => texts[key].replace(/\{(\w+)\}/g, (_, name) => values[name]);

export const MONTHS = texts.months;
