// Keeps a page fresh: looks again when the service says that something changed, and tells how fresh the page is.

import { signedOut } from "./console.js";
import { text } from "./texts.js";
import { writtenTime } from "./times.js";

const RETRY_MS = 3000;
const MAX_RETRY_MS = 10_000;

/** The tag of what an answer shows, for the next request. A proxy that compresses answers makes tags weak. */
export const tagOf = (answer) => answer.headers.get("ETag")?.replace(/^W\//, "").replaceAll('"', "") ?? "";

/** `look` fetches what the page shows and takes it in; it returns the answer, or null if there was none. */
export function keepFresh(address, look) {
  let looking = false;
  let lookAgain = false;
  let retryMs = RETRY_MS;
  let stream = null;

  async function refresh() {
    if (looking) {
      lookAgain = true;
      return;
    }
    looking = true;
    try {
      const answer = await look();
      if (answer?.status === 401) return signedOut();
      if (answer?.status !== 200 && answer?.status !== 304) return tryAgain();
      retryMs = RETRY_MS;
      if (stream?.readyState === EventSource.OPEN) fresh(true);
    } finally {
      looking = false;
    }
    if (lookAgain) {
      lookAgain = false;
      refresh();
    }
  }

  function tryAgain() {
    fresh(false);
    setTimeout(refresh, retryMs);
    retryMs = Math.min(2 * retryMs, MAX_RETRY_MS);
  }

  // A hidden page needs no stream: browsers allow few connections at a time.
  function listen() {
    if (stream || document.hidden) return;
    stream = new EventSource(address);
    stream.addEventListener("open", refresh);
    stream.addEventListener("calendar", refresh);
    stream.addEventListener("signed-out", signedOut);
    stream.addEventListener("error", () => {
      fresh(false);
      if (stream?.readyState === EventSource.CLOSED) {
        stream = null;
        refresh(); // checks whether the session is still valid
        setTimeout(listen, 5000 + Math.random() * 5000);
      }
    });
  }

  function fresh(on) {
    const state = document.querySelector("[data-live-state]");
    document.body.toggleAttribute("data-away", !on);
    if (on !== state.classList.contains("is-live")) {
      state.classList.toggle("is-live", on);
      state.querySelector("[data-live-text]").textContent = on
        ? text("live")
        : text("as_of", { time: writtenTime(new Date().toTimeString().slice(0, 5)) });
    }
  }

  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      stream?.close();
      stream = null;
      fresh(false);
    } else listen();
  });
  addEventListener("pagehide", () => stream?.close());

  return { refresh, listen };
}
