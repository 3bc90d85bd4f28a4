// Checks the hash chain of the record in this browser, from the transcript as anyone can get it.
const button = document.getElementById("verify");
const found = document.getElementById("verified");

function say(words, good) {
  const line = document.createElement("p");
  line.className = good ? "good" : "wrong";
  line.textContent = words;
  found.append(line);
}

async function check() {
  found.replaceChildren();
  button.disabled = true;
  try {
    const answer = await fetch(button.dataset.transcript, { cache: "no-store" });
    if (!answer.ok) throw new Error("the transcript is not available now");
    const { checkChain } = await import("./chain.js");
    const result = checkChain(await answer.text());
    if (result.holds) {
      say(`The record holds: the protocol has its hash, and ${result.total === 1 ? "its one event is as it was written" : `all ${result.total} events are as they were written, each tied to those before it`}.`, true);
      say(`Head: ${result.head}`, true);
    } else {
      say(`The record does not hold. ${result.problem}`, false);
    }
    const more = document.createElement("p");
    more.className = "hint";
    more.textContent = "This browser has checked the chain. To check that every decision follows from the releases before it, use discreet verify.";
    found.append(more);
  } catch (error) {
    say(`This could not be checked: ${error.message}.`, false);
  } finally {
    button.disabled = false;
  }
}

button?.addEventListener("click", check);
