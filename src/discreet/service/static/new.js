// Lets the plan of a new trial answer at every change of its form.
const form = document.getElementById("new");
const shown = document.getElementById("plan");
const news = document.getElementById("plan-news");
const PAUSE = 400;
let timer = 0;
let asked = 0;

async function plan() {
  const mine = ++asked;
  shown.setAttribute("aria-busy", "true");
  try {
    const body = new URLSearchParams(new FormData(form));
    const answer = await fetch(form.dataset.plan, { method: "POST", body });
    if (!answer.ok) throw new Error("not now");
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (mine !== asked) return;
    shown.replaceChildren(...page.body.childNodes);
    news.textContent = shown.querySelector("li, p")?.textContent ?? "";
    for (const button of shown.querySelectorAll("[data-use]")) button.hidden = false;
    const again = shown.querySelector("[data-again]");
    if (again) soon(1000 * Number(again.dataset.again));
  } catch {
    if (mine === asked) {
      const line = document.createElement("p");
      line.textContent = "The plan is not available now: change something to try again.";
      shown.replaceChildren(line);
    }
  } finally {
    if (mine === asked) shown.setAttribute("aria-busy", "false");
  }
}

function soon(wait) {
  clearTimeout(timer);
  timer = setTimeout(plan, wait);
}

/** Shows only the fields that the kind of outcome, and of trust, has. */
function fit() {
  const kinds = [form.elements.outcomes.value, form.elements.trust.value];
  for (const part of form.querySelectorAll("[data-for]")) {
    part.hidden = !kinds.includes(part.dataset.for);
  }
}

form.addEventListener("input", () => {
  fit();
  soon(PAUSE);
});
shown.addEventListener("click", (event) => {
  const most = event.target.dataset?.use;
  if (!most) return;
  form.elements.max_people.value = most;
  form.elements.max_people.focus();
  soon(0);
});
document.getElementById("show-plan").hidden = true;
fit();
plan();
