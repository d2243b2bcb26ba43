function render(result) {
  const proposal = (result._meta || {})["frontdesk/card"];
  const found = result.structuredContent || {};
  if (result.isError || !proposal) return show(element("p", found.detail || "There is nothing to confirm."));
  const token = proposal.confirmationToken || found.confirmationToken;
  const yes = button("Yes: " + proposal.title, confirm, "main");
  const no = button("No", () => {
    show(element("h1", proposal.title), element("p", "Nothing has been changed."));
    inform("The person said no to: " + proposal.title + ". Nothing has been changed. Do not propose it again by yourself.");
  });
  show(element("h1", proposal.title), list(proposal.lines), row(yes, no), element("p", "Nothing has been changed yet."));

  async function confirm() {
    yes.disabled = no.disabled = true;
    let answer;
    try {
      answer = await ask("tools/call", {name: proposal.tool, arguments: {...input, confirmationToken: token}});
    } catch (error) {
      yes.disabled = no.disabled = false;
      card.lastChild.textContent = "The practice could not be reached. Press again: it is done at most once.";
      return;
    }
    const body = answer.structuredContent || {};
    if (answer.isError || body.code === "confirmation_required") {
      show(element("h1", proposal.title), list(proposal.lines), element("p", body.detail || "This has expired. Ask again."));
      inform("The person agreed, but it was not executed: " + (body.code || "error") + ".");
    } else {
      show(element("h1", "Done"), list(proposal.lines));
      inform("The person agreed on the card, and it has been executed: " + proposal.title + ". " + JSON.stringify(body));
    }
  }
}
