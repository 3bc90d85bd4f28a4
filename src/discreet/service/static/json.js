/**
 * JSON as Python reads it, and as `canonical` in `discreet.trials.protocol` writes it: the
 * text that is hashed. JSON.parse would lose how numbers were written: 1.0 is not 1.
 */

import { written } from "./numbers.js";

const SPACE = /[ \t\n\r]*/y;
const STRING = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
const NUMBER = /-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?/y;
const WORD = /true|false|null/y;
const HALF_A_PAIR = /\p{Surrogate}/u;
const MOST_DIGITS = 4300; // of a whole number: Python reads no longer ones
const DEEPEST = 100;

/** A number, by the text that Python writes for it. */
class Written {
  constructor(text) {
    this.text = text;
  }
}

/** What a text says: objects as Maps, numbers as they are written. Refuses what is no JSON, a
 * name that stands twice in an object, and what no text in UTF-8 can hold.
 */
export function read(text) {
  const reader = new Reader(text.replace(/^\ufeff/, ""));
  const found = reader.value(0);
  if (!reader.ended) throw new Error("there is more after its end.");
  return found;
}

/** What was read, as a text that is the same for the same value: names in the order of their
 * code points, no spaces, escapes only where they must be (as JSON.stringify has them too).
 */
export function canonical(value) {
  if (value instanceof Written) return value.text;
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value instanceof Map) {
    const names = [...value.keys()].sort(byCodePoint);
    const parts = names.map((name) => `${JSON.stringify(name)}:${canonical(value.get(name))}`);
    return `{${parts.join(",")}}`;
  }
  return JSON.stringify(value);
}

/** JavaScript's own order is by halves of pairs, which has emoji before some letters. */
function byCodePoint(one, other) {
  const [here, there] = [Array.from(one), Array.from(other)];
  const at = here.findIndex((letter, place) => letter !== there[place]);
  if (at < 0 || at >= there.length) return here.length - there.length;
  return here[at].codePointAt(0) - there[at].codePointAt(0);
}

/** Goes through a text from the beginning to the end. */
class Reader {
  constructor(text) {
    this.text = text;
    this.at = 0;
  }

  get ended() {
    return this.at === this.text.length;
  }

  /** The next value, and the white space around it. */
  value(depth) {
    if (depth > DEEPEST) throw new Error("it is nested too deeply.");
    this.take(SPACE);
    const first = this.text[this.at];
    let found;
    if (first === "{") found = this.object(depth);
    else if (first === "[") found = this.array(depth);
    else found = first === '"' ? this.string() : this.plain();
    this.take(SPACE);
    return found;
  }

  object(depth) {
    const found = new Map();
    this.list("}", () => {
      this.take(SPACE);
      const name = this.string();
      if (found.has(name)) throw new Error("a name occurs twice.");
      this.take(SPACE);
      if (this.next() !== ":") throw notJson();
      found.set(name, this.value(depth + 1));
    });
    return found;
  }

  array(depth) {
    const found = [];
    this.list("]", () => found.push(this.value(depth + 1)));
    return found;
  }

  /** What stands between brackets, separated by commas; `one` reads one of them. */
  list(end, one) {
    this.next();
    this.take(SPACE);
    if (this.text[this.at] === end) {
      this.next();
      return;
    }
    for (let next = ","; next !== end; next = this.next()) {
      if (next !== ",") throw notJson();
      one();
    }
  }

  string() {
    const found = JSON.parse(this.must(STRING)[0]);
    if (HALF_A_PAIR.test(found)) throw new Error("a text has half a character in it.");
    return found;
  }

  plain() {
    const word = this.take(WORD);
    return word ? JSON.parse(word[0]) : new Written(inPython(this.must(NUMBER)));
  }

  next() {
    return this.text[this.at++];
  }

  /** What matches here, passed over; null if nothing does. */
  take(pattern) {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text);
    if (found) this.at = pattern.lastIndex;
    return found;
  }

  must(pattern) {
    const found = this.take(pattern);
    if (!found) throw notJson();
    return found;
  }
}

/** A number as Python writes it: with a point or an exponent it is a float. */
function inPython([text, point, exponent]) {
  if (point === undefined && exponent === undefined) {
    if (text.replace("-", "").length > MOST_DIGITS) throw new Error("a number is too long.");
    return String(BigInt(text));
  }
  if (!Number.isFinite(Number(text))) throw new Error("a number is too large.");
  return written(Number(text));
}

function notJson() {
  return new Error("it is not JSON.");
}
