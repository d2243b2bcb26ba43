const WEEKDAY = new Intl.DateTimeFormat("en-GB", {weekday: "long", timeZone: "UTC"});
const DATE = new Intl.DateTimeFormat("en-GB", {day: "numeric", month: "long", year: "numeric", timeZone: "UTC"});

// Times are those of the location: as they are written, never converted.
function day(start) {
  const date = new Date(start.slice(0, 10) + "T00:00:00Z");
  return WEEKDAY.format(date) + ", " + DATE.format(date);
}
function time(start) { return start.slice(11, 16); }

function render(result) {
  const slots = (result.structuredContent || {}).items || [];
  if (result.isError || !slots.length) return show(element("p", "There is no free time in this search."));
  const parts = [element("h1", "Free times")];
  let shown = "", times;
  for (const slot of slots) {
    if (day(slot.start) !== shown) {
      shown = day(slot.start);
      times = row();
      parts.push(element("h2", shown), times);
    }
    const choice = button(time(slot.start), () => look(slot, () => render(result)));
    choice.setAttribute("aria-label", shown + ", " + time(slot.start));
    times.append(choice);
  }
  show(...parts);
}

async function look(slot, back) {
  let found;
  try {
    found = (await ask("tools/call", {name: "get_slot", arguments: {slotId: slot.id}})).structuredContent;
  } catch (error) {
    found = {};
  }
  const when = day(slot.start) + ", " + time(slot.start);
  if (!found || found.available !== true) {
    return show(element("h1", when), element("p", "This time is no longer free."), row(button("Other times", back)));
  }
  const lines = [["When", when + " (" + found.timeZone + ")"], ["With", found.providerName], ["Where", found.locationName],
    ["Visit", found.visitTypeName], ["For", found.procedureName]];
  const choose = button("Choose this time", async () => {
    show(element("h1", "Chosen"), list(lines), element("p", "Nothing has been booked yet."));
    await inform("The person chose this slot in the list. Nothing has been booked yet. slotId: " + slot.id);
    ask("ui/message", {role: "user", content: [{type: "text", text: "I choose " + when + " with " + found.providerName + "."}]}).catch(() => {});
  }, "main");
  show(element("h1", "Choose this time?"), list(lines), row(choose, button("Other times", back)));
}
