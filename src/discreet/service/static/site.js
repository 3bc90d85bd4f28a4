/**
 * A site through a bad connection. A form is sent until there is an answer; it carries a
 * key under which the service does it once, however often it arrives. Until then that key
 * is kept for this tab and this page, so that it is the same after a reload and never that
 * of another participant; what was typed stays in the form alone. Without this script the forms
 * work as they are.
 */

import { answerTo } from "./again.js";

const LOST = "No connection: trying again. However often this is sent, it is done only once.";
const UNKNOWN = "It is not known whether your last entry arrived. Enter it again: it counts only once.";
const ENDED = "Your login has ended, and it is not known whether your last entry arrived. Log in, and look for it there.";
const NOT_ARRIVED = "Your last click did not arrive, and nobody was enrolled by it. Press the button once more.";

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!form.matches("form[data-site]")) return;
  event.preventDefault();
  const wrong = faultOf(form);
  say(form, wrong, wrong !== "");
  if (wrong) form.querySelector("[data-number]").focus();
  else if (!form.dataset.busy) send(form, new FormData(form, event.submitter));
});

window.addEventListener("popstate", () => location.reload());
window.addEventListener("pageshow", (event) => event.persisted && location.reload());
comeBack();

/** What is wrong with a number that was typed, in words; it is not repeated. */
function faultOf(form) {
  const field = form.querySelector("[data-number]");
  if (!field) return "";
  const text = field.value.trim();
  if (!/^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(text)) {
    return "Type a number in digits, with a point before decimals, such as 7 or 0.25.";
  }
  const { low, high } = field.dataset;
  const within = low === undefined || (Number(low) <= Number(text) && Number(text) <= Number(high));
  return within ? "" : `The number must lie between ${low} and ${high}.`;
}

/** Send a form until there is an answer, and show it. */
async function send(form, body) {
  form.dataset.busy = "yes";
  delete form.dataset.lost;
  form.setAttribute("aria-busy", "true");
  keep(form);
  say(form, "Sending …");
  const lost = () => {
    form.dataset.lost = "yes";
    say(form, LOST);
  };
  const answer = await answerTo(form.action, { method: "POST", body }, lost);
  forget();
  delete form.dataset.busy;
  form.removeAttribute("aria-busy");
  await show(answer, form);
}

/** Put an answer in the place of this page; of one that was refused its words, so that
 * what was typed stays.
 */
async function show(answer, form = null) {
  const made = new DOMParser().parseFromString(answer.text, "text/html");
  const wrong = made.querySelector("main .wrong");
  if (form && !answer.ok) {
    say(form, wrong ? wrong.textContent : "This did not work: reload the page.", true);
    if (made.querySelector("main [data-login]")) offerLogin(form);
    return;
  }
  if (!made.querySelector("main .above")) {
    location.assign(answer.url); // another page than a site, such as the login
    return;
  }
  document.title = made.title;
  document.getElementById("main").replaceWith(document.adoptNode(made.getElementById("main")));
  if (answer.url !== location.href && !/\/site\/[a-z]+$/.test(new URL(answer.url).pathname)) {
    history.pushState(null, "", answer.url);
  }
  const result = document.querySelector("main [data-focus]") ?? document.querySelector("main h1");
  scrollTo(0, 0);
  result.focus();
}

/** The way to log in where a login has ended, and back to this page. Of a form that was
 * sent before, and whose answer was lost, nobody can say that it did nothing.
 */
function offerLogin(form) {
  if (form.dataset.lost) say(form, ENDED, true);
  const link = document.createElement("a");
  link.href = `/login?to=${encodeURIComponent(location.pathname)}`;
  link.textContent = "Log in";
  form.querySelector(".sending").append(" ", link);
}

/** After a reload: whether what was under way is done, and if not, do it with the same
 * key; where something must be typed again, ask for that.
 */
async function comeBack() {
  const left = JSON.parse(sessionStorage.getItem(pending()) ?? "null");
  if (!left) return;
  forget();
  const form = [...document.querySelectorAll("form[data-site]")].find(
    (one) => new URL(one.action).pathname === left.path,
  );
  if (!form?.elements.once) return;
  form.elements.once.value = left.once;
  if (!("enrol" in form.dataset)) {
    say(form, UNKNOWN, true);
    return;
  }
  keep(form);
  form.dataset.busy = "yes";
  say(form, "Checking whether the last participant was enrolled …");
  const where = `${location.pathname}?asked=${encodeURIComponent(left.once)}`;
  const found = await answerTo(where, {}, () => say(form, LOST));
  delete form.dataset.busy;
  if (new URL(found.url).pathname !== location.pathname) {
    forget();
    await show(found);
  } else if ("typed" in form.dataset || !form.checkValidity()) {
    say(form, NOT_ARRIVED, true);
  } else {
    await send(form, new FormData(form));
  }
}

/** Where the key of what is under way on this page is kept. */
function pending() {
  return `discreet site ${location.pathname}`;
}

function keep(form) {
  if (!form.elements.once) return;
  const path = new URL(form.action).pathname;
  sessionStorage.setItem(pending(), JSON.stringify({ path, once: form.elements.once.value }));
}

function forget() {
  sessionStorage.removeItem(pending());
}

function say(form, words, wrong = false) {
  const place = form.querySelector(".sending");
  place.textContent = words;
  place.classList.toggle("wrong", wrong);
}
