/**
 * Checks in a browser that a published transcript is the record that was written: the
 * protocol has its hash, and each event the hash of all before it and itself.
 *
 * `discreet verify` checks much more: that every event is what the strategy would have done
 * on the releases before it, and that the whole status follows from them.
 */

import { canonical, read } from "./json.js";
import { sha256 } from "./sha256.js";

const FRAME = ["seq", "kind", "hash"];
const SALT = /^[0-9a-f]{32}$/;

/**
 * What holds of a transcript, given as its text: `holds`, whether all of it does; `events`,
 * how many are as they were written, and `total`, how many there are; `head`, as a status
 * shows it, of the last that is; `protocol`, whether it has its hash; and `problem`, what is
 * wrong, or null. With `known`, a head that was noted before, the record must go on from it.
 */
export function checkChain(text, known = null) {
  let parts;
  try {
    parts = partsOf(read(text));
  } catch (error) {
    const problem = `This is no transcript of a trial: ${error.message}`;
    return { holds: false, events: 0, total: 0, head: null, protocol: false, problem };
  }
  const begin = sha256(canonical(parts.protocol));
  const protocol = begin === parts.protocolHash;
  const heads = protocol ? headsOf(parts.events, begin) : [`0:${begin}`];
  const [events, head, total] = [heads.length - 1, heads.at(-1), parts.events.length];
  const problem = problemOf({ protocol, heads, total, said: parts.head, known });
  return { holds: problem === null, events, total, head, protocol, problem };
}

function problemOf({ protocol, heads, total, said, known }) {
  const events = heads.length - 1;
  if (!protocol) return "The protocol is not the one that has this hash.";
  if (total === 0) return "The record has no beginning.";
  if (events === 0) return "The first event is not the one that names the protocol's hash.";
  if (events < total) {
    return `The record holds up to event ${events}; what comes after it was not written there.`;
  }
  if (said !== heads.at(-1)) return "The record does not end where the status says.";
  if (known !== null && !heads.slice(1).includes(known)) {
    return "The record does not continue from the head that is known.";
  }
  return null;
}

/** The heads of a record, from that of none to that of the last event that is in order. */
function headsOf(events, begin) {
  const heads = [`0:${begin}`];
  const salts = new Set();
  let previous = begin;
  for (const [place, event] of events.entries()) {
    const hash = link(previous, place + 1, event);
    if (hash === null || event.get("hash") !== hash) break;
    if (place === 0 && !isFirst(event, begin)) break;
    const salt = event.get("salt");
    if (typeof salt !== "string" || !SALT.test(salt) || salts.has(salt)) break;
    salts.add(salt);
    heads.push(`${place + 1}:${hash}`);
    previous = hash;
  }
  return heads;
}

/** Whether an event is the one that a record of this protocol begins with. */
function isFirst(event, begin) {
  const names = [...event.keys()].filter((name) => !FRAME.includes(name)).sort();
  return event.get("kind") === "created" && event.get("protocol") === begin && names.join() === "protocol,salt";
}

/** The hash of an event: of all before it, its place, and what it says; null if it is in
 * another place, or none.
 */
function link(previous, place, event) {
  if (!(event instanceof Map) || typeof event.get("kind") !== "string") return null;
  if (canonical(event.get("seq") ?? null) !== String(place)) return null;
  const body = new Map([...event].filter(([name]) => !FRAME.includes(name)));
  return sha256(`${previous}\n${place}\n${event.get("kind")}\n${canonical(body)}`);
}

/** What of a transcript is looked at. */
function partsOf(said) {
  const shapes = { protocol: Map, events: Array, status: Map };
  const whole = said instanceof Map && said.has("protocol_hash");
  if (!whole || Object.keys(shapes).some((name) => !(said.get(name) instanceof shapes[name]))) {
    throw new Error("it does not have the parts of one.");
  }
  const [protocol, events, status] = Object.keys(shapes).map((name) => said.get(name));
  return { protocol, events, protocolHash: said.get("protocol_hash"), head: status.get("head") };
}
