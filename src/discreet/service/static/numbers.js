/**
 * Numbers as Python has them: a float as an exact fraction, and as it is written. They are
 * in respond.js, which imports nothing.
 */

export { exact, written } from "./respond.js";
