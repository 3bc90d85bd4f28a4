/**
 * A participant's page: shows what is asked and the odds, has the answer randomised by
 * respond.js, shows what will leave the device, and sends it when the person agrees. The
 * true answer is in the form alone until then, and is taken out of it; it is never sent
 * and never stored.
 */

import { answerTo } from "./again.js";
import { odds, readNumber, respond, wordOf } from "./respond.js";

const KEPT = "discreet answer";
const TRIES = 1000;
const DIGITS = 40; // of the coins' recipe
const LOST = "No connection: trying again. However often it is sent, it is taken once.";
const NO_LINK = "Open the link that you were given: this page does not know whom it asks.";
const OTHER_SCRIPT =
  "The script of this page is not the one that the trial's protocol names, so it is not used: " +
  "tell whoever invited you.";
const NAMED = "It is the one that the trial's protocol names.";
const UNNAMED = "The protocol of this trial names no script.";
const CLOSED = {
  late: "The time for this answer has passed. You do not need to do anything more; thank you.",
  ended: "This trial needs no more answers. You do not need to do anything more; thank you.",
};

let asked = null; // the question, as the service put it
let word = ""; // what will leave the device

if (document.getElementById("answering")) {
  addEventListener("hashchange", another);
  start();
}

// --- what a person may read ----------------------------------------------------------------

/** The levels that may be sent, as outcomes, the worst first. */
export function levelsOf({ middle_level: middle, low, high, direction }) {
  const rewards = middle === null ? [0, 1] : [0, middle, 1];
  return rewards.map((one) => outcomeOf(one, { low, high, direction }));
}

/** The row of a coin's tosses: with H as 0 and T as 1 it is the chance of the opposite,
 * rounded up, so that a coin protects as well as the script, to one in 2^40.
 */
export function recipe(epsilon) {
  const whole = Math.ceil(odds(epsilon).other * 2 ** DIGITS + 0.001);
  const digits = whole.toString(2).padStart(DIGITS, "0");
  return digits.replaceAll("0", "H").replaceAll("1", "T").replace(/(.{5})(?=.)/g, "$1 ");
}

/** The response that the own coin of a person made: nothing is randomised here. */
export function coined(outcome, { epsilon, low, high, direction }) {
  const value = (outcome === high) === (direction === "max") ? 1 : 0;
  return { mechanism: "rr", epsilon, gamma: null, middle_level: null, value, low, high, direction };
}

function outcomeOf(reward, { low, high, direction }) {
  return direction === "max" ? low + reward * (high - low) : high - reward * (high - low);
}

function unitsOf({ gamma, middle_level: middle }) {
  return gamma !== null ? 2 ** 20 : middle !== null ? 1024 : 1;
}

/** An outcome in the words in which it is asked for. */
function named(outcome) {
  if (asked.yes_no) return outcome === 1 ? "yes" : "no";
  return String(Number(outcome.toPrecision(4)));
}

function percent(share) {
  const plain = share > 0.001 && share < 0.999;
  return `${Number(plain ? (100 * share).toFixed(1) : (100 * share).toPrecision(6))}\u00a0%`;
}

function oddsWords() {
  if (asked.gamma !== null) {
    const far = named(asked.noise * (asked.high - asked.low));
    return `A random number is added to your number: as often above 0 as below, and in about two
      of three cases not further from 0 than ${far}. Only the sum is sent.`;
  }
  const levels = levelsOf(asked).sort((a, b) => a - b).map(named);
  const { truth, other } = odds(asked.epsilon, levels.length);
  if (asked.yes_no) {
    return `Whatever your true answer is, it is sent as it is with a chance of
      ${percent(truth)}, and its opposite is sent with a chance of ${percent(other)}.`;
  }
  const rest = levels.length > 2 ? "each of the others" : "the other one";
  const [last, ...others] = levels.reverse();
  return `Your number first becomes one of ${others.reverse().join(", ")} and ${last}: one next to
    it, by chance. That one is then sent with a chance of ${percent(truth)}, and ${rest} with a chance
    of ${percent(other)}.`;
}

function meaningOf({ value }) {
  const outcome = outcomeOf(value / unitsOf(asked), asked);
  if (asked.gamma !== null) return `In words: ${named(outcome)}, your number with noise added.`;
  const levels = levelsOf(asked).length;
  const { other } = odds(asked.epsilon, levels);
  return `In words: “${named(outcome)}”. Another true answer would have given the same,
    with a chance of ${percent(other)} or more.`;
}

// --- the page --------------------------------------------------------------------------------

/** Another link in the same tab, of another person maybe: the page begins anew, so that nothing
 * of the one before is left in it.
 */
function another() {
  if (location.hash.length > 1) location.reload();
}

async function start() {
  const secret = decodeURIComponent(location.hash.slice(1));
  if (secret) {
    history.replaceState(null, "", location.pathname);
    if (kept().secret !== secret) keep({ secret });
  }
  if (!kept().secret) return note(NO_LINK);
  note("One moment …");
  const answer = await call("/a/question");
  if (!answer.ok) return note(answer.words);
  asked = answer.found;
  if (!namesScript()) return note(OTHER_SCRIPT);
  for (const place of document.querySelectorAll(".question")) {
    if (asked.question) place.textContent = asked.question;
  }
  const left = kept().word;
  if (asked.state === "answered" && !left) showReceipt({ ...asked, taken: false, late: false });
  else if (asked.state === "open" || left) showQuestion(left);
  else {
    sessionStorage.removeItem(KEPT);
    note(CLOSED[asked.state]);
  }
}

/** Whether the protocol names the script of this page, or none. */
function namesScript() {
  return asked.script === null || asked.script === at("answering").dataset.script;
}

function showQuestion(left) {
  write("about", `The trial “${asked.trial}”. You are participant ${asked.participant} in it.`);
  write("odds", oddsWords());
  at("yesno").hidden = !asked.yes_no;
  at("number").hidden = asked.yes_no;
  write("figure-hint", `A number from ${asked.low} to ${asked.high}.`);
  const coins = asked.yes_no && asked.gamma === null && asked.middle_level === null;
  at("coins").hidden = !coins;
  if (coins) {
    write("recipe", recipe(asked.epsilon));
    const share = percent(odds(asked.epsilon).other);
    write("coin-odds", `The opposite is then taken with a chance of ${share}, as with the script.`);
  }
  write("script-words", asked.script === null ? UNNAMED : NAMED);
  at("own").addEventListener("submit", (event) => handle(event, "fault", randomise));
  at("coined").addEventListener("submit", (event) => handle(event, "coin-fault", takeCoin));
  at("confirm").addEventListener("click", () => send());
  at("again").addEventListener("click", startOver);
  at("try").addEventListener("click", tryIt);
  at("asking").hidden = false;
  note("");
  if (left) {
    word = left;
    showLeaving("It was on its way before this page was loaded again.");
    send();
  }
}

function handle(event, place, work) {
  event.preventDefault();
  try {
    write(place, "");
    work();
  } catch (error) {
    write(place, error.message);
  }
}

function randomise() {
  const response = respond(truth(), asked);
  for (const form of ["own", "coined"]) at(form).reset();
  word = wordOf(response);
  showLeaving(meaningOf(response));
}

function takeCoin() {
  const response = coined(chosen("coin"), asked);
  for (const form of ["own", "coined"]) at(form).reset();
  word = wordOf(response);
  showLeaving(meaningOf(response));
}

/** The true answer, as it stands in the form. */
function truth() {
  if (asked.yes_no) return chosen("truth");
  const number = readNumber(at("figure").value);
  const { low, high } = asked;
  if (asked.out_of_range !== "clip" && !(low <= number && number <= high)) {
    throw new Error(`Type a number from ${low} to ${high}.`);
  }
  return number;
}

function chosen(name) {
  const found = document.querySelector(`input[name="${name}"]:checked`);
  if (!found) throw new Error("Choose yes or no first.");
  return Number(found.value);
}

function showLeaving(words) {
  for (const id of ["own", "trying", "coins"]) at(id).hidden = true;
  write("word", word);
  write("meaning", words);
  at("leaving").hidden = false;
  at("leaves").focus();
}

function startOver() {
  word = "";
  at("leaving").hidden = true;
  for (const id of ["own", "trying"]) at(id).hidden = false;
  at("coins").hidden = at("recipe").textContent === "";
  at("own").querySelector("input:not([hidden])").focus();
}

async function send() {
  const key = kept().key ?? crypto.randomUUID();
  keep({ secret: kept().secret, word, key });
  at("confirm").disabled = at("again").disabled = true;
  write("sending", "Sending …");
  const answer = await call("/a/answer", { response: word }, { "Idempotency-Key": key });
  keep({ secret: kept().secret });
  if (answer.ok) return showReceipt(answer.found);
  write("sending", answer.words);
  at("confirm").disabled = at("again").disabled = false;
}

function showReceipt(found) {
  sessionStorage.removeItem(KEPT);
  note("");
  at("asking").hidden = true;
  write("receipt-title", titleOf(found));
  write("receipt-words", receiptWords(found));
  write("receipt-trial", asked.trial);
  write("receipt-participant", String(found.participant));
  write("receipt-word", found.taken ? word : "not known here any more");
  const [number, hash] = found.event ?? [];
  const place = found.event ? `event ${number}, ${hash}` : `participant ${found.participant}`;
  write("receipt-event", place);
  write("receipt-head", found.head);
  at("receipt").hidden = false;
  at("receipt-title").focus();
}

function titleOf(found) {
  if (found.taken) return "Thank you: your answer was taken";
  return found.late ? "The time for this answer had passed" : "An answer was already taken";
}

function receiptWords(found) {
  if (found.late) return "An answer that came too late is not kept. You do not need to do anything more.";
  const before = found.taken ? "" : "This link is for one answer, and nothing was changed now. ";
  if (!found.published) {
    return `${before}This trial publishes sums over many people, never single answers: yours is
      part of one of them, and cannot be found on its own. The record lists you by your number.`;
  }
  if (found.event) {
    return `${before}The answer is in the trial's record, under your number, in the event below.`;
  }
  return `${before}The record takes answers in the order in which people were enrolled: yours will
    be in it, by your number, when those before you have answered.`;
}

// --- a thousand times ------------------------------------------------------------------------

function tryIt() {
  const { low, high } = asked;
  const truths = asked.yes_no ? [1, 0] : [low, (low + high) / 2, high];
  const found = truths.map((one) => [one, sample(one)]);
  at("tried").replaceChildren(asked.gamma === null ? countsTable(found) : spreadTable(found));
}

function sample(outcome) {
  return Array.from({ length: TRIES }, () => respond(outcome, asked).value / unitsOf(asked));
}

/** How often each level was sent, with the odds beside it. */
function countsTable(found) {
  const levels = asked.middle_level === null ? [1, 0] : [1, asked.middle_level, 0];
  const heads = ["True answer", ...levels.map((one) => `Sent: ${named(outcomeOf(one, asked))}`)];
  const rows = found.map(([outcome, sent]) => [
    named(outcome),
    ...levels.map((one) => sent.filter((value) => value === one).length),
  ]);
  return table(`Of ${TRIES} answers each`, heads, rows, true);
}

/** Below which numbers a tenth, a half and nine tenths of what was sent lay. */
function spreadTable(found) {
  const heads = ["True answer", "A tenth were below", "Half were below", "A tenth were above"];
  const rows = found.map(([outcome, sent]) => {
    const sorted = sent.map((one) => outcomeOf(one, asked)).sort((a, b) => a - b);
    return [named(outcome), ...[0.1, 0.5, 0.9].map((part) => named(sorted[part * TRIES]))];
  });
  return table(`Of ${TRIES} answers each`, heads, rows, false);
}

function table(caption, heads, rows, bars) {
  const made = element("table", "", { class: "tried" });
  made.append(element("caption", caption));
  const head = made.createTHead().insertRow();
  head.append(...heads.map((one) => element("th", one, { scope: "col" })));
  const body = made.createTBody();
  for (const [first, ...cells] of rows) {
    const row = body.insertRow();
    row.append(element("th", first, { scope: "row" }), ...cells.map((one) => cell(one, bars)));
  }
  return made;
}

function cell(content, bar) {
  const made = element("td", String(content));
  if (bar) {
    made.append(element("meter", "", { min: 0, max: TRIES, value: content, "aria-hidden": true }));
  }
  return made;
}

function element(kind, text, attributes = {}) {
  const made = document.createElement(kind);
  made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

// --- how -----------------------------------------------------------------------------------

async function call(path, body = {}, headers = {}) {
  const told = { Authorization: `Bearer ${kept().secret}`, "Content-Type": "application/json" };
  const options = { method: "POST", headers: { ...told, ...headers }, body: JSON.stringify(body) };
  const lost = () => (asked === null ? note(LOST) : write("sending", LOST));
  const answer = await answerTo(path, options, lost);
  try {
    const found = JSON.parse(answer.text);
    return { ok: answer.ok, found, words: sentence(found.detail ?? "") };
  } catch {
    return { ok: false, words: "This did not work: load the page again." };
  }
}

function sentence(words) {
  return words && `${words[0].toUpperCase()}${words.slice(1)}.`;
}

function kept() {
  return JSON.parse(sessionStorage.getItem(KEPT) ?? "{}");
}

function keep(what) {
  sessionStorage.setItem(KEPT, JSON.stringify(what));
}

function note(words) {
  write("note", words);
  at("note").className = words ? "notice" : "";
}

function write(id, words) {
  at(id).textContent = words;
}

function at(id) {
  return document.getElementById(id);
}
