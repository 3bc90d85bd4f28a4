/**
 * Requests through a bad connection: asked again, with pauses, until there is an answer.
 * They carry a key under which the service does them once.
 */

const PAUSES = [1, 2, 4, 8, 15]; // seconds; the last one again and again
const PATIENCE = 20_000; // milliseconds for one answer
const AWAY = new Set([502, 503, 504]);

/** The answer to a request; `lost` is called each time it must be asked for again. */
export async function answerTo(url, options, lost) {
  for (let tried = 0; ; tried += 1) {
    try {
      const answer = await fetch(url, { ...options, signal: AbortSignal.timeout(PATIENCE) });
      if (!AWAY.has(answer.status)) {
        return { url: answer.url, ok: answer.ok, text: await answer.text() };
      }
    } catch {
      // not reached, or the answer was lost on its way
    }
    lost();
    await pause(PAUSES[Math.min(tried, PAUSES.length - 1)]);
  }
}

/** Wait some seconds, or until the connection is there again. */
function pause(seconds) {
  return new Promise((resolve) => {
    const timer = setTimeout(done, seconds * 1000);
    window.addEventListener("online", done);
    function done() {
      clearTimeout(timer);
      window.removeEventListener("online", done);
      resolve();
    }
  });
}
