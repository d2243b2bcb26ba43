// Follows a check of the audit trail while it runs. Without it, the page is opened again by hand.

const ASK_SECONDS = 1;

async function follow() {
  const shown = document.getElementById("check");
  if (shown?.dataset.check !== "running") return;
  const answer = await fetch("/console/audit/check", { cache: "no-store" }).catch(() => null);
  if (answer?.ok) {
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("check");
    if (fresh) shown.replaceWith(document.adoptNode(fresh));
  }
  if (answer?.status !== 401) setTimeout(follow, ASK_SECONDS * 1000);
}

setTimeout(follow, ASK_SECONDS * 1000);
