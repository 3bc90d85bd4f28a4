// Lets the plan of a new trial answer at every change of its form.
const form = document.getElementById("new");
const shown = document.getElementById("plan");
const news = document.getElementById("plan-news");
const PAUSE = 400;
let timer = 0;
let asked = 0;
const notes = [...form.querySelectorAll(".field > .wrong")];
/** Fields with a note that are right by now, though only others were changed. */
let right = new Set();

async function plan() {
  const mine = ++asked;
  shown.setAttribute("aria-busy", "true");
  try {
    const body = new URLSearchParams(new FormData(form));
    const answer = await fetch(form.dataset.plan, { method: "POST", body });
    if (!answer.ok) throw new Error("not now");
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (mine !== asked) return;
    beside(page.querySelector("[data-wrong]"));
    shown.replaceChildren(...page.body.childNodes);
    const line = shown.querySelector(".answer li") ?? shown.querySelector("p");
    news.textContent = line?.dataset.brief ?? line?.textContent ?? "";
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

/** What the answer says of single fields is shown beside them, not in the plan. */
function beside(said) {
  const wrong = said.dataset.wrong.split(" ");
  right = new Set(notes.map(named).filter((name) => !wrong.includes(name)));
  document.getElementById("accrual-read").textContent = said.dataset.read;
  said.remove();
  look();
}

/** The field that a note is about. */
function named(note) {
  return note.id.replace(/-wrong$/, "");
}

/** What a field said when the form was sent. */
function sent(field) {
  if (!(field instanceof RadioNodeList)) return field.defaultValue;
  return [...field].find((one) => one.defaultChecked)?.value ?? "";
}

/** A note is about what its field said when the form was sent: it goes when the field
 * says something else or is right by now, and comes back when that is over. */
function look() {
  for (const note of notes) {
    const field = form.elements[named(note)];
    const same = field.value.trim() === sent(field).trim();
    note.hidden = !same || right.has(named(note));
    describe(note.closest("fieldset.field") ?? field, note);
  }
  const all = document.getElementById("some-wrong");
  if (all) all.hidden = notes.every((note) => note.hidden);
}

/** Tells screen readers whether a field, or a group of choices, has this note. */
function describe(field, note) {
  const ids = (field.getAttribute("aria-describedby") ?? "").split(" ");
  const known = ids.filter((id) => id && id !== note.id);
  if (!note.hidden) known.push(note.id);
  field.setAttribute("aria-describedby", known.join(" "));
  if (field.matches("fieldset")) return;
  if (note.hidden) field.removeAttribute("aria-invalid");
  else field.setAttribute("aria-invalid", "true");
}

function soon(wait) {
  clearTimeout(timer);
  timer = setTimeout(plan, wait);
}

/** Shows only the fields that the kind of outcome, and of trust, has. */
function fit() {
  const kinds = [form.elements.outcomes.value, form.elements.trust.value];
  for (const part of form.querySelectorAll("[data-for]")) {
    const noted = part.querySelector(".wrong:not([hidden])");
    part.hidden = !kinds.includes(part.dataset.for) && !noted;
  }
}

form.addEventListener("input", (event) => {
  right.delete(event.target.name);
  look();
  fit();
  soon(PAUSE);
});
shown.addEventListener("click", (event) => {
  const most = event.target.dataset?.use;
  if (!most) return;
  form.elements.max_participants.value = most;
  form.elements.max_participants.focus();
  look();
  soon(0);
});
document.getElementById("show-plan").hidden = true;
fit();
plan();
