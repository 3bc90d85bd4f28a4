/**
 * Randomises a person's outcome in the person's own browser: the law of `discreet.respond`.
 * Only the word of a response (`wordOf`) may leave the page.
 *
 * Chance comes from `crypto.getRandomValues` alone, and every draw is decided in whole
 * numbers. exp(-x) is never computed: a trial that succeeds with exactly that chance is
 * made of trials with chances that are fractions (Canonne, Kamath & Steinke 2020). The one
 * step in floats is the protocol's own, from an outcome to a reward, with the operations
 * and so the very bits of `Scale.reward`.
 *
 * A source of bytes, `random(count)`, may be handed in for tests; it returns `count` bytes.
 *
 * This file imports nothing, so that its hash, which stands in the protocol, is of all that
 * randomises.
 */

const PLACES = 1024; // a middle level is a multiple of 1/1024
const FINE = 2 ** 20; // units of a reward under Gaussian noise
const LARGEST = 1e100; // of an end of the range
const ANSWER = /^(?:rr|(?:levels|gauss)\/[^/]+)\/[^/]+\/-?\d{1,15}$/;
const SPAN = /^([^:]+):([^:]+):(max|min)$/;

/**
 * The response to send for one outcome. Call it once for each outcome.
 *
 * `settings` are those of the protocol: `epsilon`; `low`, `high`, `direction` ("max" or
 * "min") and `out_of_range` ("refuse" or "clip"), where they are not 0, 1, max and refuse;
 * `middle_level`, where the trial announced a middle level; or `gamma` and `noise`, the standard
 * deviation of Gaussian noise in rewards, which the trial knows by its mechanism's own map.
 */
export function respond(outcome, settings, random = systemBytes) {
  const { noise, out_of_range: outOfRange = "refuse", ...rest } = settings;
  const checked = check(rest);
  if (outOfRange !== "refuse" && outOfRange !== "clip") {
    throw new Error("What lies outside the range must be refused or clipped: refuse or clip.");
  }
  const reward = exact(rewardOf(outcome, checked, outOfRange));
  if (checked.mechanism === "gauss") {
    if (!(typeof noise === "number" && noise > 0 && noise < 1e9)) {
      throw new Error("Gaussian responses need noise: its standard deviation, in rewards.");
    }
    const units = roundedToUnits(reward, random) + gaussian(exact(noise * FINE), random);
    return { ...checked, value: Number(units) };
  }
  const levels = levelsOf(checked);
  const truth = levels.indexOf(rounded(reward, levels, random));
  const sent = randomise(truth, levels.length, exact(checked.epsilon), random);
  return { ...checked, value: Number(levels[sent]) };
}

/** With which chance a person's level is sent as it is, and with which each other one: for
 * people to read, so in floats. There are two levels, or three with a middle one.
 */
export function odds(epsilon, levels = 2) {
  const other = 1 / (Math.exp(epsilon) + levels - 1);
  return { truth: 1 / (1 + (levels - 1) * Math.exp(-epsilon)), other };
}

/** A response as the one word that `Response.parse` reads. */
export function wordOf({ mechanism, epsilon, gamma, middle_level: middle, value, low, high, direction }) {
  const levels = [epsilon, gamma ?? middle].filter((one) => one !== null).map(written);
  const usual = low === 0 && high === 1 && direction === "max";
  const span = usual ? "" : `@${written(low)}:${written(high)}:${direction}`;
  return `${[mechanism, ...levels, value].join("/")}${span}`;
}

/** The response that was written as a word; a bare number, such as an outcome, is refused. */
export function parse(word) {
  try {
    return parsed(String(word).trim());
  } catch {
    throw new Error(
      "This is not a randomised response: have the outcome randomised where the person is.",
    );
  }
}

function parsed(word) {
  const [answer, span = "0:1:max", ...beyond] = word.split("@");
  const [mechanism, ...numbers] = ANSWER.exec(answer)[0].split("/");
  const [, low, high, direction] = SPAN.exec(span);
  const value = Number(numbers.pop());
  const [epsilon, ...more] = numbers.map(readNumber);
  const extra = more.map((number) => [mechanism === "levels" ? "middle_level" : "gamma", number]);
  const ends = { low: readNumber(low), high: readNumber(high), direction };
  const checked = check({ epsilon, ...Object.fromEntries(extra), ...ends });
  const known = checked.mechanism === "gauss" || levelsOf(checked).map(Number).includes(value);
  if (checked.mechanism !== mechanism || !known || beyond.length) throw new Error();
  return { ...checked, value };
}

/** A number as a person types it. The error does not repeat it: it may be an outcome. */
export function readNumber(text) {
  const plain = String(text).trim();
  if (/^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(plain)) return Number(plain);
  throw new Error("Type a number in digits, such as 7 or 0.25.");
}

// --- what is allowed ---------------------------------------------------------------------

/** The settings of a response with none left out, and the mechanism they mean. */
function check({ epsilon, gamma = null, middle_level: middle = null, low = 0, high = 1, direction = "max" }) {
  if (!(typeof epsilon === "number" && epsilon >= 1e-12 && epsilon <= 1e9)) {
    throw new Error("epsilon must be a number between 1e-12 and 1e9.");
  }
  if (gamma !== null && middle !== null) {
    throw new Error("Give a middle level or a gamma, not both.");
  }
  if (gamma !== null && !(typeof gamma === "number" && gamma > 0 && gamma < 1)) {
    throw new Error("gamma must lie strictly between 0 and 1.");
  }
  const units = typeof middle === "number" ? middle * PLACES : NaN;
  const announced = Number.isInteger(units) && units >= PLACES / 64 && units <= (PLACES * 63) / 64;
  if (middle !== null && !announced) {
    throw new Error("middle_level must be the level that was announced with the assignment.");
  }
  const numbers = typeof low === "number" && typeof high === "number";
  const within = numbers && -LARGEST <= low && low < high && high <= LARGEST;
  if (!within || high - low < 1 / LARGEST) {
    throw new Error("The range must be two numbers, the smallest outcome and the largest.");
  }
  if (direction !== "max" && direction !== "min") {
    throw new Error("direction must be max or min.");
  }
  const mechanism = gamma !== null ? "gauss" : middle !== null ? "levels" : "rr";
  return { mechanism, epsilon, gamma, middle_level: middle, low, high, direction };
}

/** What may be sent, in units: whole numbers from the worst level to the best. */
function levelsOf({ middle_level: middle }) {
  return middle === null ? [0n, 1n] : [0n, BigInt(middle * PLACES), BigInt(PLACES)];
}

/** The reward in [0, 1] of an outcome, as `Scale.reward` has it. */
function rewardOf(outcome, { low, high, direction }, outOfRange) {
  let value = typeof outcome === "number" ? outcome : NaN;
  if (outOfRange === "clip") value = Math.min(Math.max(value, low), high);
  if (!(low <= value && value <= high)) {
    throw new Error(
      `The outcome must be a number from ${low} to ${high}, the range in the protocol.`,
    );
  }
  const share = Math.min(Math.max((value - low) / (high - low), 0), 1);
  return direction === "max" ? share : 1 - share;
}

// --- chance --------------------------------------------------------------------------------

/** A level from 0 to levels − 1, the true one e^ε times as likely as each other one; ε is a
 * fraction. One of them is proposed, all alike: the truth is sent, another one with chance
 * e^-ε, else there is another proposal.
 */
export function randomise(truth, levels, epsilon, random = systemBytes) {
  for (;;) {
    const sent = Number(below(BigInt(levels), random));
    if (sent === truth || chanceOfExp(epsilon, random)) return sent;
  }
}

/** A reward rounded at random to one of the two levels around it, so that its mean is the
 * reward exactly. The levels are in units, from 0 to those of the reward 1.
 */
function rounded([numerator, denominator], levels, random) {
  const exactly = numerator * levels.at(-1); // in units, over the denominator
  const place = levels.length > 2 && exactly >= levels[1] * denominator ? 1 : 0;
  const [low, high] = levels.slice(place, place + 2);
  const up = chance(exactly - low * denominator, (high - low) * denominator, random);
  return up ? high : low;
}

/** A reward in fine units, rounded at random to one of the two around it in the same way. */
function roundedToUnits([numerator, denominator], random) {
  const exactly = numerator * BigInt(FINE);
  const up = chance(exactly % denominator, denominator, random);
  return exactly / denominator + (up ? 1n : 0n);
}

/** Discrete Gaussian noise, P(x) ∝ exp(-x²/2s²), for a fraction s: algorithm 3 there. */
export function gaussian([numerator, denominator], random = systemBytes) {
  const scale = numerator / denominator + 1n;
  const [top, bottom] = [numerator ** 2n, denominator ** 2n * scale];
  for (;;) {
    const found = laplace(scale, random);
    const away = (found < 0n ? -found : found) * bottom - top;
    if (chanceOfExp([away ** 2n, 2n * top * bottom * scale], random)) return found;
  }
}

/** Discrete Laplace noise, P(x) ∝ exp(-|x|/s), for a whole s: algorithm 2 there. */
function laplace(scale, random) {
  for (;;) {
    const rest = below(scale, random);
    if (!chanceOfExp([rest, scale], random)) continue;
    let whole = 0n;
    while (chanceOfExp([1n, 1n], random)) whole += 1n;
    const size = rest + scale * whole;
    const negative = below(2n, random) === 1n;
    if (!negative) return size;
    if (size > 0n) return -size;
  }
}

/** True with chance exp(-x) exactly, for a fraction x ≥ 0: e^-1 as often as there are wholes
 * in it, then the rest. It ends at the first no, so a large x takes no longer than a small.
 */
export function chanceOfExp([numerator, denominator], random = systemBytes) {
  for (let wholes = numerator / denominator; wholes > 0n; wholes -= 1n) {
    if (!chanceOfSmallExp(1n, 1n, random)) return false;
  }
  return chanceOfSmallExp(numerator % denominator, denominator, random);
}

/** The same for x ≤ 1: of trials with chances x, x/2, x/3, … the first that fails has an odd
 * number with chance 1 − x + x²/2! − x³/3! + … = exp(-x).
 */
function chanceOfSmallExp(numerator, denominator, random) {
  let number = 1n;
  while (chance(numerator, denominator * number, random)) number += 1n;
  return number % 2n === 1n;
}

/** True with exactly this chance, a fraction. */
function chance(numerator, denominator, random) {
  return below(denominator, random) < numerator;
}

/** A whole number from 0 to limit − 1, all alike: bytes that would favour some are drawn
 * again.
 */
export function below(limit, random = systemBytes) {
  const count = (limit.toString(16).length + 1) >> 1;
  const all = 1n << BigInt(8 * count);
  const fair = all - (all % limit);
  for (;;) {
    let drawn = 0n;
    for (const byte of random(count)) drawn = drawn * 256n + BigInt(byte);
    if (drawn < fair) return drawn % limit;
  }
}

function systemBytes(count) {
  return crypto.getRandomValues(new Uint8Array(count));
}

// --- numbers as Python has them -----------------------------------------------------------

/** A float as [numerator, denominator], whole numbers in lowest terms. It loses nothing: a
 * float is a whole number over a power of two, and doubling one is exact.
 */
export function exact(number) {
  if (!Number.isFinite(number)) throw new Error("Only a finite number is a fraction.");
  let doubled = 0;
  for (; !Number.isInteger(number); doubled++) number *= 2;
  return [BigInt(number), 1n << BigInt(doubled)];
}

/** A finite float as Python writes it: 1.0, 0.1, 1e-05, 1e+16. The digits are JavaScript's
 * own, the fewest that tell the number from all others; only the form differs.
 */
export function written(number) {
  if (Object.is(number, -0)) return "-0.0";
  const [digits, exponent] = number.toExponential().split("e");
  const power = Number(exponent);
  if (power < -4 || power >= 16) {
    return `${digits}e${power < 0 ? "-" : "+"}${String(Math.abs(power)).padStart(2, "0")}`;
  }
  return Number.isInteger(number) ? `${number}.0` : String(number);
}
