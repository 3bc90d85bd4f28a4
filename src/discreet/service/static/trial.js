// Shows a trial as it is now: asks every few seconds whether anything has changed, and if so
// fetches the page again and puts in what is new.
const EVERY = 5000;
let waits = false;

async function text(address) {
  const answer = await fetch(address, { cache: "no-store", credentials: "same-origin" });
  if (!answer.ok || answer.redirected) throw new Error("not now");
  return answer.text();
}

function keep(live, fresh) {
  const focused = live.contains(document.activeElement) ? document.activeElement.id : "";
  for (const one of live.querySelectorAll("details[open][id]")) {
    fresh.querySelector(`#${CSS.escape(one.id)}`)?.setAttribute("open", "");
  }
  for (const drawn of live.querySelectorAll("img[id]")) {
    const next = fresh.querySelector(`#${drawn.id}`);
    if (next && drawn.getAttribute("src") === next.getAttribute("src")) next.replaceWith(drawn);
  }
  live.replaceChildren(...fresh.childNodes);
  for (const name of ["mark", "words"]) live.dataset[name] = fresh.dataset[name];
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
}

async function look() {
  const live = document.getElementById("live");
  const news = document.getElementById("news");
  if (waits || document.hidden || !live) return;
  waits = true;
  try {
    if ((await text(live.dataset.head)) !== live.dataset.mark) {
      const page = new DOMParser().parseFromString(await text(location.href), "text/html");
      const fresh = page.getElementById("live");
      if (fresh) {
        const words = fresh.dataset.words;
        keep(live, fresh);
        renewHead(page);
        renew("record", page);
        news.textContent = `Changed just now: ${words}.`;
      }
    } else if (news.dataset.lost) {
      news.textContent = "";
    }
    delete news.dataset.lost;
  } catch {
    news.dataset.lost = "yes";
    news.textContent = "The service does not answer now; what is shown may be old.";
  } finally {
    waits = false;
  }
}

/** Puts in what can be done now, if that is something else than before. */
function renewHead(page) {
  const [old, fresh] = [document, page].map((one) => one.getElementById("head"));
  if (!old || !fresh || old.textContent === fresh.textContent) return;
  const focused = old.contains(document.activeElement) && document.activeElement.href;
  old.replaceChildren(...fresh.childNodes);
  if (!focused) return;
  const same = [...old.querySelectorAll("a")].find((link) => link.href === focused);
  same?.focus({ preventScroll: true });
}

/** Puts in new lines of the record, and leaves buttons and what they have found. */
function renew(id, page) {
  const [old, fresh] = [document, page].map((one) => one.getElementById(id)?.parentElement);
  for (const part of ["tbody", ".hash", ".pager"]) {
    const [before, after] = [old?.querySelector(part), fresh?.querySelector(part)];
    if (before && after && !before.contains(document.activeElement)) before.replaceWith(after);
  }
}

setInterval(look, EVERY);
document.addEventListener("visibilitychange", look);
